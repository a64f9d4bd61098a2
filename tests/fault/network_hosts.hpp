#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "benchmarks/network/host_network.hpp"

namespace elastic::testing {

/// A network of hosts, and what can go wrong on it. Throws where something cannot be done.
class NetworkHosts {
 public:
  explicit NetworkHosts(std::size_t hosts);

  std::string address(std::size_t host) const;
  /// Put before a command, starts it on that host.
  std::vector<std::string> enter(std::size_t host) const;

  /// Unplugs a host from the bridge: all that it sends, and all that is sent to it, is lost without
  /// an error. `restore` plugs it in again.
  void silence(std::size_t host) const;
  void restore(std::size_t host) const;
  /// Loses all that one host sends to another, and nothing else.
  void cut(std::size_t from, std::size_t to) const;
  void mend(std::size_t from, std::size_t to) const;
  /// The two ends of a host's cable in this process: an Ethernet frame each is read and written.
  struct Cable {
    UniqueFd host_end;
    UniqueFd bridge_end;
  };
  /// Cuts a host's cable, for this process to carry the frames.
  Cable splice(std::size_t host) const;
  /// Bytes per second that reach the host.
  void limit_download(std::size_t host, std::size_t bytes_per_second) const;

 private:
  network::HostNetwork network_;
};

}  // namespace elastic::testing
