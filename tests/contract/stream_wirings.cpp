#include "stream_wirings.hpp"

#include <memory>
#include <stdexcept>
#include <utility>

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/tls_session.hpp"
#include "collectives/transport/shm/shm.hpp"
#include "collectives/transport/tcp/tcp_stream.hpp"
#include "collectives/transport/tcp/tls_stream.hpp"
#include "tests/inproc_pair.hpp"

namespace elastic::transport {
namespace {

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(std::string("cannot make ") + what);
}

StreamPair inproc_pair() {
  auto pair = make_inproc_pair(kWiringRingBytes);
  require(pair.ok(), "an inproc pair");
  return std::move(pair).value();
}

StreamPair shm_pair() {
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "a socket pair");
  auto offered = offer_shm(ends[0], kWiringRingBytes, nullptr);
  require(offered.ok(), "shared memory");
  auto accepted = accept_shm(UniqueFd(ends[1]), nullptr);
  require(accepted.ok(), "shared memory");
  auto concluded = conclude_shm(UniqueFd(ends[0]), std::move(offered).value());
  require(concluded.ok(), "shared memory");
  return {std::move(concluded).value(), std::move(accepted).value()};
}

/// Over the loopback address that `address` holds; its port is chosen by the kernel.
template <typename Address>
SocketPair connected(int family, Address address) {
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  UniqueFd listener(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  require(::bind(listener.get(), generic, length) == 0, "a listener");
  require(::listen(listener.get(), 1) == 0, "a listener");
  require(::getsockname(listener.get(), generic, &length) == 0, "a listener");
  UniqueFd dialer(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  require(::connect(dialer.get(), generic, length) == 0, "a connection");
  UniqueFd acceptor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  require(static_cast<bool>(acceptor), "a connection");
  return {std::move(dialer), std::move(acceptor)};
}

StreamPair streams_over(SocketPair sockets) {
  return {std::make_unique<TcpStream>(std::move(sockets.first)),
          std::make_unique<TcpStream>(std::move(sockets.second))};
}

StreamPair tcp6_pair() {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  return streams_over(connected(AF_INET6, address));
}

StreamPair tls4_pair() {
  SocketPair sockets = tcp4_sockets();
  return tls_over(std::move(sockets.first), std::move(sockets.second), [] {});
}

}  // namespace

SocketPair tcp4_sockets() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return connected(AF_INET, address);
}

StreamPair tcp4_pair() {
  return streams_over(tcp4_sockets());
}

bool shake_hands(TlsSession& session, int socket) {
  const Result<bool> done = session.handshake();
  require(done.ok(), "a TLS session");
  const auto answer = session.sealed();
  require(::send(socket, answer.data(), answer.size(), 0) == static_cast<ssize_t>(answer.size()),
          "a TLS session");
  session.sent(answer.size());
  return done.value();
}

StreamPair tls_over(UniqueFd dialer, UniqueFd acceptor, const std::function<void()>& carry) {
  constexpr std::uint64_t kRecordsPerKey = 5;
  const SessionKey key = random_session_key();
  auto one =
      std::make_unique<TlsSession>(dialer.get(), TlsSession::Role::kDialer, key, kRecordsPerKey);
  auto other = std::make_unique<TlsSession>(acceptor.get(), TlsSession::Role::kAcceptor, key,
                                            kRecordsPerKey);
  for (bool done = false; !done;) {
    const bool first = shake_hands(*one, dialer.get());
    carry();
    const bool second = shake_hands(*other, acceptor.get());
    carry();
    done = first && second;
  }
  return {std::make_unique<TlsStream>(std::move(dialer), std::move(one)),
          std::make_unique<TlsStream>(std::move(acceptor), std::move(other))};
}

std::vector<StreamWiring> stream_wirings() {
  return {{"inproc", inproc_pair}, {"shm", shm_pair},        {"tcp4", tcp4_pair},
          {"tcp6", tcp6_pair},     {"tcp4x4", tcp4_pair, 4}, {"shm_x2", shm_pair, 2},
          {"tls4", tls4_pair},     {"tls4x4", tls4_pair, 4}};
}

}  // namespace elastic::transport
