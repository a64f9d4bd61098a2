#pragma once

#include <boost/asio/ip/tcp.hpp>

#include "base/status.hpp"

namespace elastic::rendezvous {

/// Has `acceptor` listen at `wanted`, where port 0 is any that is free. Accept with accept_socket.
/// \returns the address with the port, or why not, and what to do.
Result<boost::asio::ip::tcp::endpoint> listen_at(boost::asio::ip::tcp::acceptor& acceptor,
                                                 const boost::asio::ip::tcp::endpoint& wanted);

}  // namespace elastic::rendezvous
