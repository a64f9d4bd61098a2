#include "benchmarks/peers/bare/ring_sockets.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <ifaddrs.h>
#include <memory>
#include <poll.h>
#include <string>
#include <string_view>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "benchmarks/peers/bare/agreement.hpp"

namespace elastic::bench {

namespace {

constexpr int kLongestMs = 60'000;

Status socket_failure(const std::string& what) {
  return Status(Code::kUnavailable, what + ": " + std::strerror(errno));
}

Result<sockaddr_in> address_of(const std::string& interface) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return socket_failure("cannot list the network interfaces");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if (interface != one->ifa_name) continue;
    sockaddr_in address{};
    std::memcpy(&address, one->ifa_addr, sizeof address);
    return address;
  }
  return Status(Code::kUnavailable, "the interface " + interface + " has no IPv4 address");
}

/// Opens a listener. \returns it and its address as bytes.
Result<std::pair<UniqueFd, std::string>> listen(const PeerStart& start) {
  auto address = address_of(start.interface);
  if (!address.ok()) return address.status();
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto* const name = reinterpret_cast<sockaddr*>(&address.value());
  socklen_t length = sizeof(sockaddr_in);
  const bool listens = listener && ::bind(listener.get(), name, length) == 0 &&
                       ::listen(listener.get(), 1) == 0 &&
                       ::getsockname(listener.get(), name, &length) == 0;
  if (!listens) return socket_failure("cannot accept connections on " + start.interface);
  return std::pair(std::move(listener), std::string(reinterpret_cast<const char*>(name), length));
}

Result<UniqueFd> connect_to(const std::string& address) {
  sockaddr_in name{};
  std::memcpy(&name, address.data(), std::min(address.size(), sizeof name));
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
    std::array<char, INET_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET, &name.sin_addr, text.data(), text.size());
    return socket_failure(std::string("cannot connect to the next rank at ") + text.data());
  }
  return socket;
}

Result<UniqueFd> accept_from(const UniqueFd& listener) {
  pollfd waiting{listener.get(), POLLIN, 0};
  if (::poll(&waiting, 1, kLongestMs) != 1) {
    return Status(Code::kUnavailable, "the rank before has not connected for a minute");
  }
  UniqueFd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) return socket_failure("cannot accept the connection of the rank before");
  return socket;
}

Status prepare(const UniqueFd& socket) {
  if (!socket) return {};
  const int on = 1;
  if (::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0 &&
      ::fcntl(socket.get(), F_SETFL, O_NONBLOCK) == 0) {
    return {};
  }
  return socket_failure("cannot set a connection up");
}

/// Connects to the next rank, then accepts the previous one. No deadlock: the kernel completes a
/// connection before the peer accepts it.
Status link(const PeerStart& start, const UniqueFd& listener, const std::string& next_address,
            UniqueFd& next, UniqueFd& previous) {
  if (start.ranks > 2 || start.rank == 0) {
    auto made = connect_to(next_address);
    if (!made.ok()) return made.status();
    next = std::move(made).value();
  }
  if (start.ranks > 2 || start.rank == 1) {
    auto accepted = accept_from(listener);
    if (!accepted.ok()) return accepted.status();
    previous = std::move(accepted).value();
  }
  Status status = prepare(next);
  return status.ok() ? prepare(previous) : status;
}

bool later() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

}  // namespace

Result<RingSockets> RingSockets::connect(const PeerStart& start) {
  auto listener = listen(start);
  if (Status status = agree(start, listener.status()); !status.ok()) return status;
  const auto addresses = start.exchange(listener.value().second);
  const auto& next_address = addresses[static_cast<std::size_t>((start.rank + 1) % start.ranks)];
  UniqueFd next;
  UniqueFd previous;
  const Status linked = link(start, listener.value().first, next_address, next, previous);
  if (Status status = agree(start, linked); !status.ok()) return status;
  return RingSockets(std::move(next), std::move(previous));
}

Result<std::size_t> RingSockets::send(std::span<const std::byte> bytes) const {
  const ssize_t sent = ::send(sending(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (later()) return std::size_t{0};
  return Status(Code::kPeerLost,
                std::string("cannot send to the next rank: ") + std::strerror(errno));
}

Result<std::size_t> RingSockets::receive(std::span<std::byte> bytes) const {
  const ssize_t got = ::recv(receiving(), bytes.data(), bytes.size(), 0);
  if (got > 0) return static_cast<std::size_t>(got);
  if (got < 0 && later()) return std::size_t{0};
  return Status(Code::kPeerLost, "the rank before has gone");
}

Status RingSockets::wait(bool to_send, bool to_receive) const {
  std::array<pollfd, 2> sockets{pollfd{to_send ? sending() : -1, POLLOUT, 0},
                                pollfd{to_receive ? receiving() : -1, POLLIN, 0}};
  const int ready = ::poll(sockets.data(), sockets.size(), kLongestMs);
  if (ready > 0 || (ready < 0 && errno == EINTR)) return {};
  return Status(Code::kUnavailable, "nothing has moved between the ranks for a minute");
}

}  // namespace elastic::bench
