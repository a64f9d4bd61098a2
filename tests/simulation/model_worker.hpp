#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/event_fd.hpp"
#include "base/mutex.hpp"
#include "collectives/backend/native/tuning_record.hpp"
#include "coordinator/coordinator.hpp"
#include "coordinator/lane.hpp"
#include "model_client.hpp"
#include "model_linker.hpp"
#include "process.hpp"
#include "program.hpp"
#include "runtime/commit_gate.hpp"
#include "runtime/participation.hpp"
#include "runtime/roster.hpp"

namespace elastic::simulation {

/// A worker: the real Participation, Lanes, NativeBackend, Coordinator and CommitGate, with threads
/// of its own. This class stands for runtime::Control and ParticipationEffects, the thin shells
/// around them; client and linker are models as well.
class ModelWorker : private runtime::Participation::Effects {
 public:
  ModelWorker(Node self, SimContext& context);
  ~ModelWorker() override;

  void start();

  // Faults and other events from outside the worker.
  void kill();
  void pause(Duration length);
  void leave_early() { program_.leave_early(); }
  void suspect(Node peer);
  void mishear();
  void receive(const Connection& connection, const rendezvous::Message& message);
  /// The run is over: ends what is left of its threads.
  void dismantle();

  // For its program, any thread.
  Status wait_until_member();
  /// Why it has left the job.
  Status wait_until_ended();
  std::shared_ptr<const coordinator::Members> members() const { return members_; }
  /// The members to which the rules of groups are applied, as MembershipStatus has them.
  std::shared_ptr<const runtime::Roster> roster() const;
  void set_roster(runtime::Roster roster) {
    roster_ = std::make_shared<const runtime::Roster>(std::move(roster));
  }
  /// The joins that have ended here.
  std::uint64_t joins() const { return joins_; }
  void count_join() { ++joins_; }
  std::uint64_t admitted_at() const { return view_.admitted_at; }
  coordinator::Lane& lane(std::size_t index) { return *lanes_[index]; }
  coordinator::Coordinator& coordinator() { return *coordinator_; }
  runtime::CommitGate& gate() { return gate_; }
  const runtime::CommitGate& gate() const { return gate_; }
  Milliseconds view_timeout() const;
  /// The worker is a member, and its program calls elastic::run again.
  void call_run() {
    process_.post([this] { participation_.ready({}); });
  }
  void set_synced() { synced_ = true; }
  /// Whether the worker has neither left the job nor been told to.
  bool is_in() const;
  /// Says goodbye. If it is `done`, it waits for the others.
  void leave(bool done);
  /// The program has ended, for that reason: so does the process.
  void finish(const Status& why);

  const Process& process() const { return process_; }
  ModelLinker& linker() { return linker_; }
  const std::string& incarnation() const { return process_.incarnation(); }
  bool over() const { return process_.over(); }
  bool killed() const { return killed_; }
  /// It has left, or is to leave, before the job's end: because it was told to, or could not go on.
  bool leaves_early() const { return left_with_error_ || program_.leaves_early(); }
  const Program& program() const { return program_; }
  std::uint64_t commits_done() const { return gate_.commits(); }
  std::uint64_t generation() const { return participation_.generation(); }
  std::uint64_t position(std::size_t lane) const;
  /// The worker without which the operation in flight cannot be replayed, as it has reported.
  const std::string& needs(std::size_t lane) const { return needs_[lane]; }
  /// Can take part in the making of links.
  bool answers() const { return !process_.over() && !process_.asleep(); }
  bool all_threads_ended() const;
  std::string describe() const;

 private:
  void run_program();
  void on_message(const rendezvous::Message& message);
  void on_farewell(const rendezvous::Farewell& farewell);
  void leave_with_error(const Status& why);
  void end_with(const Status& reason);
  void on_connected(const rendezvous::View& view,
                    Result<std::vector<ModelLinker::LinksOfPeer>> links);
  void look_for_end(Node peer, std::uint64_t watch, unsigned looks);
  void exit(bool unsent_is_lost);
  std::unique_ptr<coordinator::Lane> make_lane(std::size_t index);
  void note(const std::string& what) const;
  std::shared_ptr<const coordinator::Members> members_in(const rendezvous::View& view) const;
  std::shared_ptr<coordinator::LaneView> lane_view(const rendezvous::View& view, std::size_t lane);

  // Participation::Effects
  void send(const rendezvous::Message& message) override;
  void freeze_lanes() override;
  void begin_lanes_at(const std::vector<std::uint64_t>& positions) override;
  void connect(const rendezvous::View& view) override;
  void cancel_connect() override { linker_.cancel(); }
  void watch_for_end(const rendezvous::Member& member) override;
  void forget_ends() override { ++end_watches_; }
  void install(const rendezvous::View& view) override;
  runtime::Participation::Promise propose(std::uint64_t round, std::uint64_t at_commit) override;
  void withdraw() override { gate_.withdraw(); }
  void resume() override {
    at_boundary_ = false;
    gate_.resume();
  }
  bool paused_for(std::uint64_t round) const override { return gate_.paused_for(round); }
  std::uint64_t commits() const override { return gate_.commits(); }
  rendezvous::Heartbeat heartbeat() const;
  std::vector<std::uint64_t> positions() const override;
  bool synced() const override { return synced_; }
  void end(const Status& reason) override;

  SimContext& context_;
  Process process_;
  runtime::CommitGate gate_;
  std::shared_ptr<collectives::SpareBuffer> spare_ = std::make_shared<collectives::SpareBuffer>();
  std::shared_ptr<collectives::TuningRecord> record_;
  std::array<std::shared_ptr<EventFd>, kLanes> abort_events_;
  std::array<std::unique_ptr<coordinator::Lane>, kLanes> lanes_;
  std::unique_ptr<coordinator::Coordinator> coordinator_;
  Program program_;
  Thread* trainer_ = nullptr;
  ModelClient client_;
  runtime::Participation participation_;
  rendezvous::AnnouncedView announced_;
  ModelLinker linker_;

  rendezvous::View view_;  // in force
  std::shared_ptr<const coordinator::Members> members_;
  std::shared_ptr<const runtime::Roster> roster_;
  std::uint64_t joins_ = 0;
  rendezvous::View next_;                        // being linked for
  std::vector<ModelLinker::LinksOfPeer> links_;  // for it, just made
  std::uint64_t end_watches_ = 0;                // all but the last are forgotten
  std::array<std::string, kLanes> needs_;
  std::vector<std::uint64_t> reported_;  // positions, in the present generation
  bool at_boundary_ = false;             // the program stands at one
  std::size_t still_to_freeze_ = 0;      // lanes, of Mutation::kUnfrozenBoundary
  bool killed_ = false;
  bool left_with_error_ = false;
  bool ready_ = false;
  bool synced_ = false;

  // Shared with the threads of the program.
  mutable Mutex mutex_;
  ConditionVariable changed_;
  bool member_ ELASTIC_GUARDED_BY(mutex_) = false;
  bool farewell_ ELASTIC_GUARDED_BY(mutex_) = false;
  bool connected_ ELASTIC_GUARDED_BY(mutex_) = false;
  Status ended_ ELASTIC_GUARDED_BY(mutex_);
};

}  // namespace elastic::simulation
