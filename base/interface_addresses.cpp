#include "base/interface_addresses.hpp"

#include <array>
#include <ifaddrs.h>
#include <netdb.h>

#include <sys/socket.h>

namespace elastic {

namespace asio = boost::asio;

std::vector<InterfaceAddress> interface_addresses(bool v6) {
  std::vector<InterfaceAddress> found;
  std::vector<InterfaceAddress> loopback;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && !(v6 && family == AF_INET6)) continue;
    std::array<char, NI_MAXHOST> text{};
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (::getnameinfo(entry->ifa_addr, length, text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) != 0) {
      continue;
    }
    boost::system::error_code error;
    const auto address = asio::ip::make_address(text.data(), error);
    if (error || (address.is_v6() && address.to_v6().is_link_local())) continue;
    (address.is_loopback() ? loopback : found).push_back({entry->ifa_name, address});
  }
  ::freeifaddrs(list);
  found.insert(found.end(), loopback.begin(), loopback.end());
  return found;
}

}  // namespace elastic
