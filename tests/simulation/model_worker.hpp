#pragma once

#include <array>
#include <optional>
#include <string>

#include "model_client.hpp"
#include "model_lane.hpp"
#include "model_trainer.hpp"
#include "process.hpp"
#include "runtime/participation.hpp"

namespace elastic::simulation {

/// A worker: the real Participation, and around it models of what it asks things of.
class ModelWorker : private runtime::Participation::Effects {
 public:
  ModelWorker(Node self, Around& around);

  void start() { client_.dial(); }

  // What happens to it.
  void kill();
  void pause(Duration length);
  void leave_early() { trainer_.leave_early(); }
  void suspect(Node peer);
  void mishear() { client_.mishear(); }
  /// A frame in a lane.
  void receive(std::size_t lane, const Frame& frame);
  void receive(const Connection& connection, const rendezvous::Message& message);
  void link_lost(std::size_t lane, Node peer);

  const Process& process() const { return process_; }
  const std::string& incarnation() const { return process_.incarnation(); }
  bool over() const { return process_.over(); }
  bool killed() const { return killed_; }
  const ModelLane& lane(std::size_t index) const { return lanes_[index]; }
  const ModelTrainer& trainer() const { return trainer_; }
  std::uint64_t generation() const { return participation_.generation(); }
  /// Can take part in the making of links.
  bool answers() const { return !process_.over() && !process_.asleep(); }
  std::string describe() const;

 private:
  void on_message(const rendezvous::Message& message);
  void on_farewell(const rendezvous::Farewell& farewell);
  void leave(bool done);
  void try_to_link(std::uint64_t attempt);
  void exit(bool unsent_is_lost);
  ModelLane make_lane(std::size_t index);
  void note(const std::string& what) const;

  // Participation::Effects
  void send(const rendezvous::Message& message) override;
  void freeze_lanes() override;
  void begin_lanes_at(const std::vector<std::uint64_t>& positions) override;
  void connect(const rendezvous::View& view) override;
  void cancel_connect() override { ++linking_; }
  void install(const rendezvous::View& view) override;
  runtime::Participation::Promise propose(std::uint64_t round, std::uint64_t at_commit) override;
  void withdraw() override { trainer_.withdraw(); }
  void resume() override { trainer_.resume(); }
  bool paused_for(std::uint64_t round) const override { return trainer_.paused_for(round); }
  std::uint64_t commits() const override { return trainer_.commits(); }
  std::vector<std::uint64_t> positions() const override;
  bool synced() const override { return trainer_.synced(); }
  void end(const Status& reason) override;

  Around& around_;
  Process process_;
  std::array<ModelLane, kLanes> lanes_;
  ModelTrainer trainer_;
  ModelClient client_;
  runtime::Participation participation_;

  rendezvous::View view_;      // in force
  rendezvous::View next_;      // being linked for
  std::uint64_t linking_ = 0;  // counts attempts; all but the last are cancelled
  TimePoint link_until_{};
  bool killed_ = false;
  bool ready_ = false;
};

}  // namespace elastic::simulation
