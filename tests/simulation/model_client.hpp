#pragma once

#include <functional>

#include "process.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::simulation {

/// Stands for rendezvous::Client: dials the server, registers, sends heartbeats, and comes back
/// when the connection is lost, at once and then with growing pauses.
class ModelClient {
 public:
  struct Callbacks {
    std::function<rendezvous::Register()> registration;
    std::function<rendezvous::Heartbeat()> heartbeat;
    std::function<void(const rendezvous::Message&)> on_message;
    std::function<void()> on_lost;  ///< of a connection on which it was welcomed
  };

  ModelClient(Process& process, Callbacks callbacks);

  void dial();
  /// Dropped while it is not welcomed.
  void send(const rendezvous::Message& message);
  /// A message of the server arrives on `connection`.
  void receive(const Connection& connection, const rendezvous::Message& message);
  /// A message of the server arrives damaged: see rendezvous::Client.
  void mishear();
  /// Ends the connection, and makes no other. If `unsent_is_lost`, what it sent last is lost too.
  void end(bool unsent_is_lost);

 private:
  void dial_later();
  void connected();
  void transmit(const rendezvous::Message& message);
  void follow_pace(const rendezvous::Message& message);
  void beat(const Connection* connection);
  void lost(const Connection& connection);
  void come_back();

  Process& process_;
  const Callbacks callbacks_;
  Connection* connection_ = nullptr;
  Connection* set_aside_ = nullptr;
  bool established_ = false;
  bool ended_ = false;
  Milliseconds pause_{0};
  Milliseconds period_{50};  // of heartbeats
};

}  // namespace elastic::simulation
