#pragma once

#include <string>
#include <vector>

#include <boost/asio/ip/address.hpp>

#include "base/interface_addresses.hpp"
#include "base/status.hpp"

namespace elastic {

/// Which of a host's addresses others are to use, as the user wrote it: "10.0.0.0/16", "eth1,eth2",
/// "fd00::/8,10.0.0.7".
class NetworkChoice {
 public:
  /// kInvalidArgument: a part is no network, address or name of an interface.
  static Result<NetworkChoice> parse(const std::string& text);

  /// The addresses among `all` that it names, in the order of its parts. kInvalidArgument, with the
  /// addresses that there are: none.
  Result<std::vector<boost::asio::ip::address>> choose(
      const std::vector<InterfaceAddress>& all) const;

 private:
  explicit NetworkChoice(std::vector<std::string> parts) : parts_(std::move(parts)) {}

  std::vector<std::string> parts_;
};

}  // namespace elastic
