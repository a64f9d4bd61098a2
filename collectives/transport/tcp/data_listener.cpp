#include "collectives/transport/tcp/data_listener.hpp"

#include <algorithm>

#include <boost/asio/ip/v6_only.hpp>

#include "base/asio_sockets.hpp"
#include "base/interface_addresses.hpp"
#include "base/network_choice.hpp"

namespace elastic::transport {

namespace ip = boost::asio::ip;
using ip::tcp;

namespace {

/// Where to listen, and what others are told.
struct Place {
  ip::address bind;
  std::vector<ip::address> told;
};

Result<Place> place_in(const std::string& network) {
  const auto choice = NetworkChoice::parse(network);
  if (!choice.ok()) return choice.status().within("ELASTIC_NETWORK");
  auto chosen = choice.value().choose(interface_addresses(true));
  if (!chosen.ok()) return chosen.status().within("ELASTIC_NETWORK");
  const std::vector<ip::address>& told = chosen.value();
  if (told.size() == 1) return Place{told.front(), told};
  const bool any_v6 =
      std::any_of(told.begin(), told.end(), [](const auto& one) { return one.is_v6(); });
  return Place{any_v6 ? ip::address(ip::address_v6::any()) : ip::address(ip::address_v4::any()),
               told};
}

Result<Place> place_of(const LinkerOptions& options) {
  if (!options.network.empty()) return place_in(options.network);
  boost::system::error_code error;
  const auto address = ip::make_address(options.bind_address, error);
  if (error) {
    return Status(Code::kInvalidArgument, "cannot accept data connections on '" +
                                              options.bind_address +
                                              "': not an IP address (ELASTIC_BIND)");
  }
  if (!address.is_unspecified()) return Place{address, {address}};
  Place all{address, {}};
  for (const auto& one : interface_addresses(address.is_v6())) all.told.push_back(one.address);
  return all;
}

boost::system::error_code listen_at(tcp::acceptor& acceptor, const tcp::endpoint& endpoint) {
  boost::system::error_code error;
  open_socket(acceptor, endpoint.protocol(), error);
  if (!error && endpoint.address().is_v6()) acceptor.set_option(ip::v6_only(false), error);
  // A port that was used a moment ago; one with a listener stays in use.
  if (!error && endpoint.port() != 0)
    acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(boost::asio::socket_base::max_listen_connections, error);
  if (!error) acceptor.native_non_blocking(true, error);
  boost::system::error_code ignored;
  if (error) acceptor.close(ignored);
  return error;
}

Status listen_at_one_of(tcp::acceptor& acceptor, const ip::address& address, PortRange ports,
                        const std::string& variable) {
  const std::string failed = "cannot accept data connections on " + address.to_string() + ": ";
  for (int port = ports.first; port <= ports.last; ++port) {
    const auto error =
        listen_at(acceptor, tcp::endpoint(address, static_cast<unsigned short>(port)));
    if (!error) return {};
    if (ports.first != 0 && error == boost::asio::error::address_in_use) continue;
    return Status(Code::kUnavailable, failed + error.message() + " (" + variable + ")");
  }
  return Status(Code::kUnavailable,
                failed + "all of the ports " + ports.text() +
                    " are in use (ELASTIC_DATA_PORTS); each worker of a host needs one");
}

std::string with_port(const ip::address& address, unsigned short port) {
  const std::string text = address.to_string();
  return (address.is_v6() ? "[" + text + "]" : text) + ":" + std::to_string(port);
}

}  // namespace

Result<std::vector<std::string>> open_data_listener(tcp::acceptor& acceptor,
                                                    const LinkerOptions& options) {
  const auto place = place_of(options);
  if (!place.ok()) return place.status();
  const std::string variable = options.network.empty() ? "ELASTIC_BIND" : "ELASTIC_NETWORK";
  const Status listens = listen_at_one_of(acceptor, place.value().bind, options.ports, variable);
  if (!listens.ok()) return listens;
  std::vector<std::string> told;
  for (const ip::address& one : place.value().told) {
    told.push_back(with_port(one, acceptor.local_endpoint().port()));
  }
  return told;
}

}  // namespace elastic::transport
