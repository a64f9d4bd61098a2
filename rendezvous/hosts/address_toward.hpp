#pragma once

#include <string>

#include <boost/asio/awaitable.hpp>

namespace elastic::hosts {

/// Whether the name is this machine's.
bool is_this_machine(const std::string& host);

/// The address that this machine has on the way to `host`, which is a name or "user@name"; in
/// brackets where it is one of IPv6. Nothing is sent. Where `host` cannot be resolved, as one that
/// only ssh's configuration knows: the first address that this machine has.
boost::asio::awaitable<std::string> address_toward(std::string host);
/// The same, for a caller without an io_context. Blocks for as long as the look-up takes.
std::string find_address_toward(const std::string& host);

}  // namespace elastic::hosts
