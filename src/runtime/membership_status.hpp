#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/status.hpp"
#include "coordinator/lane_view.hpp"
#include "rendezvous/protocol/messages.hpp"
#include "runtime/roster.hpp"

namespace elastic::runtime {

/// The view as the functions of Context see it.
struct ViewSummary {
  std::shared_ptr<const coordinator::Members> members;
  int local_rank = 0;
  int local_size = 1;
  std::uint64_t admitted_at = 0;  ///< commits at which joiners were last admitted
};

/// This worker's membership of the job, as far as the control thread knows it. The trainer's
/// threads read it and wait for its changes.
///
/// Thread-safe.
class MembershipStatus {
 public:
  // The control thread tells what has happened.
  void on_welcome(const rendezvous::Welcome& welcome);
  void on_heartbeat();
  void on_disconnected();
  void on_farewell();
  void set_view(std::shared_ptr<const ViewSummary> view);

  /// Ends this worker's membership: from now on all calls fail with `reason`. If it has ended
  /// already, the earlier reason stays. Any thread may call this.
  void end(const Status& reason);
  /// As `end`, by this worker's own decision to leave. \returns false if the membership had ended
  /// before.
  bool leave(const Status& reason);

  /// Waits at most for `limit` until the first view is there, or the server says that the job is
  /// already running. If the server has not answered by then, waits a little longer for the reason
  /// that the client gives. \returns whether this worker is a member. `server` is the server's
  /// address, for messages.
  Result<bool> wait_until_welcome(Milliseconds limit, const std::string& server);
  /// See Control::check_membership.
  Status check();
  /// Waits until this worker is a member, or returns the reason why it cannot be.
  Status wait_until_member();
  /// Waits until this worker's membership has ended, at most for `most`; returns the reason, or ok.
  /// Waits on while the server is away.
  Status wait_until_ended(Milliseconds most);
  /// Waits until this worker may go, after it said Bye; see wait_for_farewell.
  void wait_for_farewell();
  /// Waits until this worker's membership has ended, but a few seconds at most, and only while
  /// there is a connection to the server.
  void wait_until_ended_or_disconnected();

  bool is_in_job() const;
  bool left_after_timeout() const;
  /// The view in force; null while joining.
  std::shared_ptr<const ViewSummary> view() const;
  /// The members to which the rules of groups apply. Null before the first view.
  std::shared_ptr<const Roster> roster() const;
  void set_roster(Roster roster);
  void set_synced();
  bool synced() const;
  /// The slowest rank of the present view; -1 while that is unknown.
  void set_slowest(int rank);
  int slowest() const;

 private:
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::shared_ptr<const ViewSummary> view_ ELASTIC_GUARDED_BY(mutex_);
  std::shared_ptr<const Roster> roster_ ELASTIC_GUARDED_BY(mutex_);
  bool welcomed_ ELASTIC_GUARDED_BY(mutex_) = false;
  bool joining_ ELASTIC_GUARDED_BY(mutex_) = false;
  bool synced_ ELASTIC_GUARDED_BY(mutex_) = false;
  int slowest_ ELASTIC_GUARDED_BY(mutex_) = -1;
  bool farewell_ ELASTIC_GUARDED_BY(mutex_) = false;
  bool connected_ ELASTIC_GUARDED_BY(mutex_) = false;
  Milliseconds heartbeat_period_ ELASTIC_GUARDED_BY(mutex_){0};
  std::uint64_t heartbeats_ ELASTIC_GUARDED_BY(mutex_) = 0;
  TimePoint last_heartbeat_ ELASTIC_GUARDED_BY(mutex_);
  // Once `heartbeats_` has reached it, the messages that the server sent in the process's latest
  // pause have been read.
  std::uint64_t all_read_from_ ELASTIC_GUARDED_BY(mutex_) = 0;
  Status ended_ ELASTIC_GUARDED_BY(mutex_);
  /// This worker left by itself, for the reason `ended_`.
  bool left_ ELASTIC_GUARDED_BY(mutex_) = false;
};

}  // namespace elastic::runtime
