#pragma once

#include <memory>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "base/clock.hpp"
#include "rendezvous/protocol/connection.hpp"

namespace elastic::rendezvous {

struct Destination {
  std::string address;  ///< "host:port" or "[v6]:port"
  Secret secret{};
  Greeting greeting;
  bool encrypt = false;  ///< as the server does
};

/// One attempt to connect and authenticate, `timeout` at most. kUnavailable: no server is there or
/// it does not answer, and another attempt may succeed. Anything else is final.
boost::asio::awaitable<Result<std::shared_ptr<Connection>>> dial(Destination destination,
                                                                 Duration timeout);

}  // namespace elastic::rendezvous
