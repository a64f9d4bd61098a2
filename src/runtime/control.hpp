#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "base/status.hpp"
#include "base/thread_checker.hpp"
#include "collectives/transport/linker.hpp"
#include "coordinator/lane.hpp"
#include "elastic/options.hpp"
#include "rendezvous/client/client.hpp"
#include "runtime/backends.hpp"
#include "runtime/calls_under_way.hpp"
#include "runtime/commit_gate.hpp"
#include "runtime/flight_log.hpp"
#include "runtime/identity.hpp"
#include "runtime/join_request.hpp"
#include "runtime/membership_status.hpp"
#include "runtime/participation.hpp"
#include "runtime/participation_effects.hpp"
#include "runtime/step_clock.hpp"
#include "runtime/view_assembly.hpp"
#include "runtime/view_change_clock.hpp"
#include "timeline/timeline.hpp"

namespace elastic::runtime {

inline constexpr std::size_t kUnnamedLane = 0;
inline constexpr std::size_t kNamedLane = 1;

/// The control thread: keeps the connection to the rendezvous server, makes the links, and takes
/// the lanes from one view to the next. This class passes the events of the server, the lanes and
/// the training thread on to Participation, which decides. ParticipationEffects carries the
/// decisions out. The thread never blocks and never runs a collective.
///
/// Functions marked "control" run on that thread. Any thread may call the others.
class Control {
 public:
  /// `backends`, `step_clock` and `timeline` must outlive it. `arena` is the memory that peers of
  /// this host may read.
  Control(Identity identity, Options options, const Backends& backends, const StepClock& step_clock,
          std::shared_ptr<const transport::Arena> arena, timeline::Timeline& timeline);
  ~Control();

  /// Connects, and waits for the first view, or for the news that the job is already running.
  Status start();
  /// True until this worker is a member.
  bool joining() const { return !view(); }
  /// The view in force; null while joining.
  std::shared_ptr<const ViewSummary> view() const { return status_.view(); }
  Tuning tuning() const { return backends_.tuning(); }
  const ViewChangeClock& view_changes() const { return view_change_clock_; }

  coordinator::Lane& lane(std::size_t index) { return *lanes_[index]; }
  CommitGate& gate() { return gate_; }
  CallsUnderWay& calls_under_way() { return calls_; }
  const Options& options() const { return options_; }
  timeline::Timeline& timeline() { return timeline_; }
  const Identity& identity() const { return identity_; }

  /// Sends the state's layout to the server. A joiner is admitted after that, unless its line is
  /// too slow for `state_bytes` bytes.
  void send_ready(Layout layout, std::uint64_t state_bytes);
  /// \returns the reason why this worker is no longer a member, as far as this process knows;
  /// otherwise ok. If the process may have been paused, first waits for two heartbeats, by which it
  /// has read the server's messages of that time: a few seconds at most, and not at all without a
  /// connection to the server.
  Status check_membership() { return status_.check(); }
  /// Waits until this worker is a member, or returns the reason why it cannot be.
  Status wait_until_member() { return status_.wait_until_member(); }
  /// Waits until this worker is no longer a member, at most for `most`; returns the reason, or ok.
  Status wait_until_ended(Milliseconds most) { return status_.wait_until_ended(most); }
  std::shared_ptr<const Roster> roster() const { return status_.roster(); }
  /// These members have made their state the same: the rules of groups apply to them from now on.
  void set_roster(Roster roster) { status_.set_roster(std::move(roster)); }
  /// This worker has the job's state from now on.
  void set_synced() { status_.set_synced(); }
  /// Sets the slowest rank of the present view, as the ranks have found it
  /// (Options::compare_steps).
  void set_slowest(int rank) { status_.set_slowest(rank); }
  bool synced() const { return status_.synced(); }
  /// Says Bye at the job's end, and waits until this worker may go: until the other members have
  /// said it too, or a view without this worker is in force, or a deadline passes. With `unable`,
  /// the reason why this worker cannot go on, the others continue, and it does not wait for them to
  /// end.
  void leave(const std::string& unable = {});
  /// Says Bye and does not wait. `unable` is as for `leave`.
  void leave_at_once(const std::string& unable);
  /// Ends the whole job with `reason`, on every worker. Waits until the server has received it, or
  /// is away.
  void fail_job(const Status& reason);
  /// Leaves the job with `reason`. The others go on without this worker, and all its calls fail
  /// with the reason. `setup`: it is the way this worker was started.
  void leave_with_error(const Status& reason, bool setup = false);
  /// Whether this worker has left because no view came in which to complete a call.
  bool left_after_timeout() const { return status_.left_after_timeout(); }
  /// From now on all calls fail, also those under way.
  void close();
  /// Closes, and ends the control thread with all its connections. Idempotent.
  void stop();

 private:
  // control
  rendezvous::ClientOptions client_options();
  coordinator::Lane::Callbacks lane_callbacks(std::size_t lane);
  void on_heartbeat();
  void on_message(const rendezvous::Message& message);
  void on_welcome(const rendezvous::Welcome& welcome);
  void on_farewell(const rendezvous::Farewell& farewell);
  void on_failure(const Status& failure);
  void end_in_error(const Status& reason);
  rendezvous::Heartbeat heartbeat();

  const Identity identity_;
  const Options options_;
  const Backends& backends_;
  const StepClock& step_clock_;
  timeline::Timeline& timeline_;
  const std::shared_ptr<const transport::Arena> arena_;
  boost::asio::io_context io_;
  ThreadChecker control_thread_;
  CommitGate gate_;
  CallsUnderWay calls_;
  MembershipStatus status_;
  ViewChangeClock view_change_clock_{&timeline_};
  Lanes lanes_;
  AbortEvents abort_events_;
  FlightLog flight_log_{options_.flight_recorder, identity_, status_, lanes_, calls_,
                        timeline_.texts()};

  // Owned by the control thread.
  std::unique_ptr<rendezvous::Client> client_;
  std::unique_ptr<transport::Linker> linker_;
  ParticipationEffects effects_;
  Participation participation_;
  JoinRequest join_request_;
  const TimePoint began_ = Clock::now();
  TimePoint figures_due_{};  // when the next heartbeat has figures
  bool without_server_ = false;

  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_;
  std::thread thread_;
};

}  // namespace elastic::runtime
