#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "base/clock.hpp"
#include "base/handshake.hpp"
#include "base/status.hpp"
#include "rendezvous/client/unpacking.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::rendezvous {

struct ClientOptions {
  std::string address;  ///< as in Destination
  std::string job;
  Secret secret{};
  bool encrypt = false;                                               ///< as the server does
  std::function<Register()> registration;                             ///< asked for each connection
  std::function<Heartbeat()> heartbeat = [] { return Heartbeat{}; };  ///< asked each time
  Milliseconds connect_deadline{30000};  ///< no server at the address, or it does not answer
  std::shared_ptr<Unpacking> unpacking = std::make_shared<Unpacking>();
};

/// A worker's connection to the rendezvous server: connects (retrying until the deadline),
/// authenticates both ways, registers, sends heartbeats, delivers messages. Has no policy.
///
/// Lives on one io_context; every function and callback runs there.
class Client {
 public:
  struct Handlers {
    std::function<void(Message)> on_message;  ///< Welcome, Freeze, Announce, Farewell, Fail
    /// kUnavailable: never reached, with the address. kRefused: with the server's reason, or,
    /// before the first welcome, because what answered does not have the job's secret. kPeerLost:
    /// an established connection broke; the client tries to come back by itself with growing pauses
    /// and jitter, and `on_message(Welcome)` tells when it has.
    std::function<void(Status)> on_failure;
  };

  Client(boost::asio::io_context& io, ClientOptions options, Handlers handlers);
  ~Client();

  void start();
  /// Queues a message; dropped while there is no connection.
  void send(const Message& message);
  /// Sends what is queued, then closes permanently.
  void close();
  /// The bytes of all messages so far, with their headers.
  std::uint64_t received_bytes() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace elastic::rendezvous
