#include "model_client.hpp"

#include <algorithm>
#include <utility>

#include "model_server.hpp"

namespace elastic::simulation {

using namespace rendezvous;

namespace {

constexpr Milliseconds kFirstPause{50};
constexpr Milliseconds kLongestPause{1000};
constexpr Milliseconds kDialTimeLimit{5000};
/// The greatest delay of a heartbeat.
constexpr Milliseconds kHeartbeatDelay{2};

}  // namespace

ModelClient::ModelClient(Process& process, Callbacks callbacks)
    : process_(process), callbacks_(std::move(callbacks)) {}

void ModelClient::dial() {
  if (ended_) return;
  SimContext& context = process_.context();
  if (!context.network.meet(process_.self(), kServer)) {
    // Something may get through before the time limit; when is the network's to say.
    return process_.later(kFirstPause, kDialTimeLimit, [this] { dial_later(); });
  }
  process_.later(Milliseconds(0), Milliseconds(4),
                 [this] { process_.context().server.is_up() ? connected() : dial_later(); });
}

void ModelClient::dial_later() {
  pause_ = std::clamp(pause_ * 2, kFirstPause, kLongestPause);
  process_.later(pause_ / 2, pause_, [this] { dial(); });
}

void ModelClient::connected() {
  if (ended_) return;
  ModelServer& server = process_.context().server;
  connection_ = &server.accept(process_.self(), [this](Connection& which) {
    process_.post([this, &which] { lost(which); });
  });
  transmit(callbacks_.registration());
}

void ModelClient::transmit(const Message& message) {
  if (ended_) return;  // since the control thread made the message
  connection_->send(process_.self(), [&server = process_.context().server, connection = connection_,
                                      message] { server.receive(*connection, message); });
}

void ModelClient::send(const Message& message) {
  if (established_) transmit(message);
}

void ModelClient::receive(const Connection& connection, const Message& message) {
  if (&connection != connection_) return;
  follow_pace(message);
  if (std::holds_alternative<Welcome>(message) && !std::exchange(established_, true)) {
    pause_ = Milliseconds(0);
    if (set_aside_ != nullptr) std::exchange(set_aside_, nullptr)->abort(process_.self());
    beat(connection_);
  }
  callbacks_.on_message(message);
}

void ModelClient::follow_pace(const Message& message) {
  if (const auto* welcome = std::get_if<Welcome>(&message)) {
    period_ = Milliseconds(welcome->heartbeat_ms);
  } else if (const auto* announce = std::get_if<Announce>(&message)) {
    period_ = Milliseconds(announce->heartbeat_ms.value_or(period_.count()));
  } else if (const auto* change = std::get_if<AnnounceChange>(&message)) {
    period_ = Milliseconds(change->heartbeat_ms.value_or(period_.count()));
  }
}

void ModelClient::beat(const Connection* connection) {
  process_.later(period_, period_ + kHeartbeatDelay, [this, connection] {
    if (!established_ || connection != connection_) return;
    transmit(callbacks_.heartbeat());
    beat(connection);
  });
}

void ModelClient::lost(const Connection& connection) {
  if (&connection != connection_) return;
  connection_ = nullptr;
  come_back();
}

void ModelClient::mishear() {
  if (!established_) return;
  set_aside_ = std::exchange(connection_, nullptr);
  come_back();
}

void ModelClient::come_back() {
  if (ended_) return;
  if (!std::exchange(established_, false)) return dial_later();
  callbacks_.on_lost();
  dial();
}

void ModelClient::end(bool unsent_is_lost) {
  for (Connection* connection : {connection_, set_aside_}) {
    if (connection == nullptr) continue;
    unsent_is_lost ? connection->abort(process_.self()) : connection->close(process_.self());
  }
  connection_ = set_aside_ = nullptr;
  established_ = false;
  ended_ = true;
}

}  // namespace elastic::simulation
