#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/handshake.hpp"
#include "base/port_range.hpp"
#include "base/status.hpp"
#include "collectives/transport/tcp/silence_watch.hpp"
#include "elastic/options.hpp"

namespace elastic::transport {

class Arena;

struct LinkerOptions {
  std::string job;
  Secret secret{};
  bool encrypt = false;     ///< TLS on TCP; the same in all workers of the job
  std::string incarnation;  ///< this worker's
  Transport transport = Transport::kAuto;
  std::string bind_address = "127.0.0.1";  ///< where the TCP listener binds; "::1", "0.0.0.0", "::"
  std::string network;     ///< see Options::network; where it is given, `bind_address` is not used
  PortRange ports;         ///< of the TCP listener
  int streams = 1;         ///< TCP streams per link; 0: see flows_per_link
  std::string congestion;  ///< of TCP; empty: see Options::tcp_congestion
  int lanes = 2;           ///< links per peer
  std::size_t shm_ring_bytes = 1 << 20;  ///< per direction and link
  std::shared_ptr<const Arena> arena;    ///< peers of this host may read it; may be null
  /// Called on the control thread when a link that was asked for in a view cannot be made for lack
  /// of descriptors in this process.
  std::function<void(const Status&)> on_short;
  Milliseconds handshake_deadline{5000};
  Milliseconds link_timeout =
      kDefaultLinkTimeout;  ///< of silence, then a TCP link is broken; >= 1200
};

}  // namespace elastic::transport
