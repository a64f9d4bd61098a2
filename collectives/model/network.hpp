#pragma once

#include <limits>
#include <string>

/// Prices plans on networks that are described by a few numbers: seconds and bytes everywhere.
namespace elastic::model {

inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// Equal hosts, each with a line to a switch that carries everything that the lines do.
struct Network {
  /// Of each host, each way.
  struct Line {
    double rate = 0;                ///< bytes per second, of payload
    double flow_rate = kUnlimited;  ///< most of it that one TCP connection gets
    double latency = 0;     ///< from the last byte of a message sent to its receiver's next step
    double burst = 0;       ///< bytes that pass at `burst_rate` after a pause
    double burst_rate = 0;  ///< bytes per second
  };
  struct Host {
    double cores = kUnlimited;
    double memory_rate = kUnlimited;  ///< bytes read or written per second, by all cores
    double latency = 0;               ///< of a message through shared memory
    double turn = 0;                  ///< for which a rank keeps a core that another one waits for
  };
  /// What a rank spends; seconds, or seconds per byte.
  struct Processor {
    double threads =
        0;  ///< of a rank that share what goes over TCP; 0: one, or as the caller chooses
    double message = 0;         ///< on a message over TCP, at each end
    double shared_message = 0;  ///< on a message through shared memory, at each end
    double send = 0;            ///< over TCP
    double receive = 0;         ///< over TCP
    double copy = 0;            ///< to or from shared memory, or locally
    double reduce = 0;          ///< in addition to receiving, or instead of copying
  };

  std::string name;
  std::string about;
  Line line;
  Host host;
  Processor processor;
  bool hosts_share_cores = false;  ///< all hosts are on one machine, with the cores of `host`
};

}  // namespace elastic::model
