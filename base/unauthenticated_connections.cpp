#include "base/unauthenticated_connections.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace elastic {

UnauthenticatedConnections::UnauthenticatedConnections(std::size_t most) {
  set_most(most);
}

UnauthenticatedConnections::Admission UnauthenticatedConnections::admit(std::string origin) {
  Admission admission;
  if (connections_.size() >= most_) {
    const auto displaced = victim();
    admission.displaced = displaced->first;
    connections_.erase(displaced);
  }
  admission.admitted = ++last_;
  connections_.emplace(admission.admitted, One{std::move(origin)});
  return admission;
}

std::map<UnauthenticatedConnections::Id, UnauthenticatedConnections::One>::iterator
UnauthenticatedConnections::victim() {
  const bool any_silent = std::any_of(connections_.begin(), connections_.end(),
                                      [](const auto& entry) { return entry.second.silent; });
  const auto eligible = [&](const One& one) { return one.silent || !any_silent; };
  std::map<std::string_view, std::size_t> held;
  for (const auto& [id, one] : connections_) {
    if (eligible(one)) ++held[one.origin];
  }
  // Among several origins with as many, the one whose connection is the oldest.
  auto chosen = connections_.end();
  std::size_t most = 0;
  for (auto entry = connections_.begin(); entry != connections_.end(); ++entry) {
    const One& one = entry->second;
    if (!eligible(one) || held[one.origin] <= most) continue;
    most = held[one.origin];
    chosen = entry;
  }
  return chosen;
}

void UnauthenticatedConnections::heard(Id id) {
  const auto found = connections_.find(id);
  if (found != connections_.end()) found->second.silent = false;
}

void UnauthenticatedConnections::remove(Id id) {
  connections_.erase(id);
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
