#include "collectives/transport/tcp/congestion.hpp"

#include <cerrno>
#include <cstring>

#include <boost/asio/ip/tcp.hpp>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace elastic::transport {

namespace {

using boost::asio::ip::tcp;

/// `name` is getsockname or getpeername.
template <typename Name>
boost::asio::ip::address address_of(int socket, Name name) {
  tcp::endpoint endpoint;
  auto length = static_cast<socklen_t>(endpoint.capacity());
  return name(socket, endpoint.data(), &length) == 0 ? endpoint.address()
                                                     : boost::asio::ip::address();
}

}  // namespace

Status set_congestion_control(int socket, const std::string& name) {
  const auto length = static_cast<socklen_t>(name.size());
  if (::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), length) == 0) return {};
  return Status(Code::kInvalidArgument,
                "no TCP congestion control '" + name + "' here: " + std::strerror(errno) +
                    "; `sysctl net.ipv4.tcp_allowed_congestion_control` names those there are");
}

bool stays_on_host(int socket) {
  const auto peer = address_of(socket, ::getpeername);
  return peer.is_loopback() ||
         (!peer.is_unspecified() && peer == address_of(socket, ::getsockname));
}

}  // namespace elastic::transport
