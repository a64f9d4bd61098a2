#include "benchmarks/report/network_record.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <ifaddrs.h>
#include <memory>
#include <set>

#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/config/environment.hpp"
#include "base/config/options.hpp"
#include "base/unique_fd.hpp"

namespace elastic::bench {

namespace {

template <typename Value>
Value read_first(const std::string& file, Value otherwise) {
  Value value;
  return std::ifstream(file) >> value ? value : otherwise;
}

std::string address_of(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address != nullptr && address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    ::inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
  } else if (address != nullptr && address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    ::inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
  }
  return text;
}

// Makes one of ethtool's requests. `request` starts with its number.
bool ask(const std::string& interface, void* request) {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq query{};
  interface.copy(query.ifr_name, IFNAMSIZ - 1);
  query.ifr_data = static_cast<char*>(request);
  return socket && ::ioctl(socket.get(), SIOCETHTOOL, &query) == 0;
}

Allowances read_allowances(const std::string& interface) {
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  if (!ask(interface, &driver) || driver.n_stats == 0) return {};

  // Both answers end in an array.
  std::vector<std::uint32_t> names(
      (sizeof(ethtool_gstrings) + std::size_t{driver.n_stats} * ETH_GSTRING_LEN) / 4 + 1);
  auto* strings = reinterpret_cast<ethtool_gstrings*>(names.data());
  strings->cmd = ETHTOOL_GSTRINGS;
  strings->string_set = ETH_SS_STATS;
  strings->len = driver.n_stats;
  std::vector<std::uint64_t> numbers(sizeof(ethtool_stats) / 8 + driver.n_stats + 1);
  auto* stats = reinterpret_cast<ethtool_stats*>(numbers.data());
  stats->cmd = ETHTOOL_GSTATS;
  stats->n_stats = driver.n_stats;
  if (!ask(interface, strings) || !ask(interface, stats)) return {};

  std::vector<std::string> known;
  std::vector<std::uint64_t> values;
  for (std::size_t i = 0; i < std::min(strings->len, stats->n_stats); ++i) {
    const char* name = reinterpret_cast<const char*>(strings->data) + i * ETH_GSTRING_LEN;
    known.emplace_back(name, ::strnlen(name, ETH_GSTRING_LEN));
    values.push_back(stats->data[i]);
  }
  return allowances_of(known, values);
}

Options options_in_force() {
  auto options = resolve({}, read_environment());
  return options.ok() ? options.value() : Options{};
}

}  // namespace

Allowances allowances_of(const std::vector<std::string>& names,
                         const std::vector<std::uint64_t>& values) {
  Allowances allowances;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].ends_with("_allowance_exceeded")) allowances[names[i]] = values[i];
  }
  return allowances;
}

std::vector<std::string> interfaces_of(const std::string& bind_address) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  const bool wildcard = bind_address == "0.0.0.0" || bind_address == "::";
  std::set<std::string> names;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    const bool up = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    const std::string address = address_of(one->ifa_addr);
    if (!address.empty() && (wildcard ? up : address == bind_address)) names.insert(one->ifa_name);
  }
  return {names.begin(), names.end()};
}

NetworkRecord::NetworkRecord() : NetworkRecord(options_in_force()) {}

NetworkRecord::NetworkRecord(const Options& options) {
  if (options.tcp_streams > 0) flows_per_link_ = options.tcp_streams;
  for (const std::string& name : interfaces_of(options.bind)) {
    interfaces_.push_back({name, read_allowances(name)});
  }
}

void NetworkRecord::add(const Tuning& tuning) {
  if (tuning.flows_used > 0) flows_per_link_ = tuning.flows_used;
  // The job is on one host, and the options leave the number open.
  if (!flows_per_link_) flows_per_link_ = 1;
}

nlohmann::ordered_json NetworkRecord::to_json() const {
  auto interfaces = nlohmann::ordered_json::array();
  for (const Interface& one : interfaces_) {
    nlohmann::ordered_json interface {
      {"name", one.name}, { "mtu", read_first("/sys/class/net/" + one.name + "/mtu", 0) }
    };
    const Allowances after = read_allowances(one.name);
    for (const auto& [name, count] : one.before) {
      const auto now = after.find(name);
      if (now == after.end()) continue;
      interface["allowances"][name] = {{"before", count}, {"after", now->second}};
    }
    interfaces.push_back(interface);
  }
  return {{"flows_per_link",
           flows_per_link_ ? nlohmann::ordered_json(*flows_per_link_) : nlohmann::ordered_json()},
          {"congestion_control",
           read_first("/proc/sys/net/ipv4/tcp_congestion_control", std::string("unknown"))},
          {"interfaces", interfaces}};
}

}  // namespace elastic::bench
