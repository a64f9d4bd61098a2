#include "base/unauthenticated_connections.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace elastic {

UnauthenticatedConnections::UnauthenticatedConnections(std::size_t most)
    : most_(std::max<std::size_t>(most, 1)) {}

UnauthenticatedConnections::Admission UnauthenticatedConnections::admit(std::string origin) {
  Admission admission;
  if (connections_.size() >= most_) {
    const auto displaced = victim();
    admission.displaced = displaced->id;
    connections_.erase(displaced);
  }
  admission.admitted = ++last_;
  connections_.push_back({admission.admitted, std::move(origin)});
  return admission;
}

std::list<UnauthenticatedConnections::One>::iterator UnauthenticatedConnections::victim() {
  const bool any_silent = std::any_of(connections_.begin(), connections_.end(),
                                      [](const One& one) { return one.silent; });
  const auto eligible = [&](const One& one) { return one.silent || !any_silent; };
  std::map<std::string_view, std::size_t> held;
  for (const One& one : connections_) {
    if (eligible(one)) ++held[one.origin];
  }
  // Among several origins with as many, the one whose connection is the oldest.
  auto chosen = connections_.end();
  std::size_t most = 0;
  for (auto one = connections_.begin(); one != connections_.end(); ++one) {
    if (!eligible(*one) || held[one->origin] <= most) continue;
    most = held[one->origin];
    chosen = one;
  }
  return chosen;
}

void UnauthenticatedConnections::heard(Id id) {
  for (One& one : connections_) {
    if (one.id == id) one.silent = false;
  }
}

void UnauthenticatedConnections::remove(Id id) {
  connections_.remove_if([id](const One& one) { return one.id == id; });
}

void defer_accept(int listener) {
  constexpr int kSeconds = 1;
  // Without it floods only cost more.
  (void)::setsockopt(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &kSeconds, sizeof kSeconds);
}

std::string origin_of(const boost::asio::ip::address& address) {
  if (address.is_v4()) return address.to_string();
  const boost::asio::ip::address_v6 v6 = address.to_v6();
  if (v6.is_v4_mapped()) {
    return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, v6).to_string();
  }
  boost::asio::ip::address_v6::bytes_type network = v6.to_bytes();
  std::fill(network.begin() + 8, network.end(), static_cast<unsigned char>(0));
  return boost::asio::ip::address_v6(network).to_string();
}

}  // namespace elastic
