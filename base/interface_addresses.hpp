#pragma once

#include <vector>

#include <boost/asio/ip/address.hpp>

namespace elastic {

/// Where other machines can reach a listener on all interfaces of this one: loopback last, without
/// addresses that are link-local. `v6`: those of IPv6 as well.
std::vector<boost::asio::ip::address> interface_addresses(bool v6);

}  // namespace elastic
