#pragma once

#include <string>
#include <vector>

#include <boost/asio/ip/address.hpp>

namespace elastic {

struct InterfaceAddress {
  std::string interface;  ///< "eth0"
  boost::asio::ip::address address;
};

/// Where other machines can reach a listener on all interfaces of this one: loopback last, without
/// addresses that are link-local. `v6`: those of IPv6 as well.
std::vector<InterfaceAddress> interface_addresses(bool v6);

}  // namespace elastic
