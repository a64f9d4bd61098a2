#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "coordinator/lane_view.hpp"
#include "rendezvous/protocol/messages.hpp"

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

  /// All calls fail with `reason` from now on. The first reason stays; any thread may give one.
  void end(const Status& reason);
  /// As `end`, because this worker leaves by itself. False if it was out before.
  bool abandon(const Status& reason);

  /// Waits for the first view, or for the news that the job is already running: for `limit`, or a
  /// little longer for the reason of a failure. \returns whether this worker is a member. `server`
  /// is the server's address, for messages.
  Result<bool> wait_until_welcome(Milliseconds limit, const std::string& server);
  /// See Control::check_membership.
  Status check();
  /// Waits until this worker is a member, or returns the reason why it cannot be.
  Status wait_until_member();
  /// Waits until this worker is no member any more, at most for `most`; returns the reason, or ok.
  Status wait_until_ended(Milliseconds most);
  /// Waits until this worker may go, after it said Bye; see wait_for_farewell.
  void wait_for_farewell();
  /// Waits until the server has ended this worker's part, or is away.
  void wait_for_end();

  bool is_in_job() const;
  bool left_after_timeout() const;
  /// The view in force; null while joining.
  std::shared_ptr<const ViewSummary> view() const;
  void set_synced();
  bool synced() const;
  /// The slowest rank of the present view; -1 while that is unknown.
  void set_slowest(int rank);
  int slowest() const;

 private:
  mutable std::mutex mutex_;  // protects all that follows
  std::condition_variable changed_;
  std::shared_ptr<const ViewSummary> view_;
  bool welcomed_ = false;
  bool joining_ = false;
  bool synced_ = false;
  int slowest_ = -1;
  bool farewell_ = false;
  bool connected_ = false;
  Milliseconds heartbeat_period_{0};
  std::uint64_t heartbeats_ = 0;
  TimePoint last_heartbeat_;
  std::uint64_t all_read_from_ = 0;  // number of the heartbeat by which all messages of the server
                                     // were read
  Status ended_;
  bool abandoned_ = false;  // this worker left by itself, for the reason `ended_`
};

}  // namespace elastic::runtime
