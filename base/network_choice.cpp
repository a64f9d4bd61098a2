#include "base/network_choice.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <sstream>

#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <net/if.h>

namespace elastic {

namespace ip = boost::asio::ip;

namespace {

/// The addresses from `first` to `last`.
struct Network {
  ip::address first;
  ip::address last;

  bool contains(const ip::address& address) const {
    return address.is_v4() == first.is_v4() && first <= address && address <= last;
  }
};

/// An address is a network of one. Bits after the prefix do not matter, as in "10.0.0.7/16".
std::optional<Network> network_of(const std::string& text) {
  boost::system::error_code error;
  if (const auto address = ip::make_address(text, error); !error) return Network{address, address};
  if (const auto v4 = ip::make_network_v4(text, error); !error) {
    return Network{v4.network(), v4.broadcast()};
  }
  const auto v6 = ip::make_network_v6(text, error);
  if (error) return std::nullopt;
  auto last = v6.network().to_bytes();
  for (std::size_t bit = v6.prefix_length(); bit < 8 * last.size(); ++bit) {
    last[bit / 8] |= static_cast<unsigned char>(0x80U >> (bit % 8));
  }
  return Network{v6.network(), ip::address_v6(last)};
}

/// As the kernel names them, more or less. A number is rather half an address.
bool may_be_interface(const std::string& text) {
  return !text.empty() && text.size() < IFNAMSIZ &&
         std::any_of(text.begin(), text.end(), [](unsigned char c) { return std::isalpha(c); }) &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '@';
         });
}

std::string list_of(const std::vector<InterfaceAddress>& all) {
  std::string text;
  for (const InterfaceAddress& its : all) {
    text += (text.empty() ? "" : ", ") + its.address.to_string() + " (" + its.interface + ")";
  }
  return text;
}

}  // namespace

Result<NetworkChoice> NetworkChoice::parse(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream words(text);
  for (std::string part; std::getline(words, part, ',');) parts.push_back(part);
  for (const std::string& part : parts) {
    if (network_of(part) || may_be_interface(part)) continue;
    return Status(
        Code::kInvalidArgument,
        "'" + part + "' is no network, address or interface, such as 10.0.0.0/16 or eth0");
  }
  if (parts.empty()) return Status(Code::kInvalidArgument, "no network is named");
  return NetworkChoice(std::move(parts));
}

Result<std::vector<ip::address>> NetworkChoice::choose(
    const std::vector<InterfaceAddress>& all) const {
  std::vector<ip::address> chosen;
  std::string names;
  for (const std::string& part : parts_) {
    const auto network = network_of(part);
    for (const auto& [interface, address] : all) {
      if (!(network ? network->contains(address) : interface == part)) continue;
      if (std::find(chosen.begin(), chosen.end(), address) == chosen.end()) {
        chosen.push_back(address);
      }
    }
    names += (names.empty() ? "" : ", ") + part;
  }
  if (!chosen.empty()) return chosen;
  return Status(Code::kInvalidArgument,
                "this host has no address in " + names + "; it has " + list_of(all));
}

}  // namespace elastic
