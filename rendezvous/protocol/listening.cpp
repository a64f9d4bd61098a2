#include "rendezvous/protocol/listening.hpp"

#include <string>

#include "base/asio_sockets.hpp"
#include "rendezvous/protocol/connection.hpp"

namespace elastic::rendezvous {
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

std::string remedy(const boost::system::error_code& error) {
  if (error == asio::error::address_in_use) {
    return "; end the program that has the port, choose another port, or port 0 for any that is "
           "free";
  }
  if (error == boost::system::errc::address_not_available) {
    return "; give an address of this machine (ip address shows them), or 0.0.0.0 for all of them";
  }
  if (error == asio::error::access_denied) {
    return "; choose a port from 1024 on, or port 0 for any that is free";
  }
  return "";
}

}  // namespace

Result<tcp::endpoint> listen_at(tcp::acceptor& acceptor, const tcp::endpoint& wanted) {
  boost::system::error_code error;
  open_socket(acceptor, wanted.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(wanted, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  tcp::endpoint bound;
  if (!error) bound = acceptor.local_endpoint(error);
  if (!error) acceptor.native_non_blocking(true, error);
  if (!error) return bound;
  return Status(Code::kUnavailable,
                "cannot listen on " + to_string(wanted) + ": " + error.message() + remedy(error));
}

}  // namespace elastic::rendezvous
