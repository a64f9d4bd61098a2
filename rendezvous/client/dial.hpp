#pragma once

#include <memory>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "base/clock.hpp"
#include "rendezvous/protocol/connection.hpp"

namespace elastic::rendezvous {

struct Destination {
  std::string address;  ///< "host:port" or "[v6]:port", or several with commas
  Secret secret{};
  Greeting greeting;
  bool encrypt = false;  ///< as the server does
};

/// One attempt to connect and authenticate, `timeout` at most. Where there are several addresses,
/// one after the other is tried, each for its share of the time: the server that leads listens, and
/// its standbys do not. kUnavailable: no server is there or it does not answer, and another attempt
/// may succeed. Anything else is final.
boost::asio::awaitable<Result<std::shared_ptr<Connection>>> dial(Destination destination,
                                                                 Duration timeout);

}  // namespace elastic::rendezvous
