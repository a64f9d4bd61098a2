#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/tls_session.hpp"
#include "base/unique_fd.hpp"
#include "collectives/transport/stream.hpp"

namespace elastic::transport {

/// A way to connect two ends: a transport, and how many streams a link of it has.
struct StreamWiring {
  std::string name;
  std::function<StreamPair()> pair;
  std::size_t streams = 1;
};
inline void PrintTo(const StreamWiring& wiring, std::ostream* out) {
  *out << wiring.name;
}

/// Every transport. Rings are small, so that large messages wait for room.
std::vector<StreamWiring> stream_wirings();

using SocketPair = std::pair<UniqueFd, UniqueFd>;

SocketPair tcp4_sockets();
StreamPair tcp4_pair();

/// One step of TLS's own handshake, its answer included; true when it is done.
bool shake_hands(TlsSession& session, int socket);

/// TLS from one end of a connection to the other, established while `carry` moves what is between
/// them. Keys are changed all the time.
StreamPair tls_over(UniqueFd dialer, UniqueFd acceptor, const std::function<void()>& carry);

constexpr std::size_t kWiringRingBytes = 64 * 1024;

}  // namespace elastic::transport
