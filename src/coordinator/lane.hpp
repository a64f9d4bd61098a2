#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "collectives/backend/backend.hpp"
#include "collectives/backend/spare_buffer.hpp"
#include "coordinator/lane_view.hpp"
#include "coordinator/ledger.hpp"
#include "coordinator/operation.hpp"
#include "elastic/contributors.hpp"

namespace elastic::coordinator {

/// A sequence of operations of one worker, through all views of the job.
///
/// The shell around a Ledger, which says what is to be done: runs operations, keeps the last result
/// until the next operation is complete, stops on `freeze`, and after a view change obtains the
/// interrupted operation's result from a member that has it (commit) or runs it again from the
/// intact input (replay). See docs/architecture.md.
///
/// Threads: `run` from any; the control thread calls `freeze`, `install` and `close`. The view's
/// backend and mesh are touched only by the lane's present owner (see Ownership).
class Lane {
 public:
  struct Callbacks {
    /// Frozen, and nothing of the present generation will be sent or completed any more.
    std::function<void(std::uint64_t position, std::string needs)> on_quiet;
    /// A link of `generation` failed.
    std::function<void(std::uint64_t generation, std::string incarnation, std::string reason)>
        on_suspect;
    /// The first operation after `install` is complete. May be empty.
    std::function<void()> on_resumed = {};
    /// This worker cannot go on in any view, and why. At most once. May be empty.
    std::function<void(const Status& why)> on_leave = {};
  };

  /// Temporary possession of the lane by one thread. While it lasts, `freeze` only interrupts;
  /// `on_quiet` comes when it ends.
  class Ownership {
   public:
    Ownership() = default;
    Ownership(Lane* lane, std::shared_ptr<LaneView> view) : lane_(lane), view_(std::move(view)) {}
    Ownership(Ownership&& other) noexcept
        : lane_(std::exchange(other.lane_, nullptr)), view_(std::move(other.view_)) {}
    Ownership& operator=(Ownership&& other) noexcept;
    ~Ownership() { release(); }
    void release();
    LaneView& view() const { return *view_; }
    explicit operator bool() const { return lane_ != nullptr; }

   private:
    Lane* lane_ = nullptr;
    std::shared_ptr<LaneView> view_;
  };

  /// How an attempt at an operation ended: with its final outcome (success, or an error that all
  /// ranks share and are known to have), or interrupted by a view change, after which it has to be
  /// tried again.
  struct Attempt {
    bool final = false;
    Status status;
    Contributors contributors;
  };

  /// In `spare` is kept what an operation overwrites. A worker's lanes share it, so that together
  /// they need no more than the largest operation, unless two are in flight.
  Lane(std::string name, Callbacks callbacks,
       std::shared_ptr<collectives::SpareBuffer> spare =
           std::make_shared<collectives::SpareBuffer>());
  ~Lane();

  /// Calls from several threads take turns, from the first attempt at an operation to its end.
  using Turn = std::unique_lock<std::mutex>;
  Turn take_turn() { return Turn(order_mutex_); }

  /// Runs `operation` to its end, through as many views as it takes. kTimeout when no new view
  /// comes within `view_timeout`: if the operation had begun by then, this worker leaves the job,
  /// because others may have the result; otherwise nothing was done. Whatever `close` said;
  /// kAborted, with nothing done, where it cannot begin.
  Result<Contributors> run(const Turn& turn, Operation& operation, Milliseconds view_timeout);
  Result<Contributors> run(Operation& operation, Milliseconds view_timeout) {
    return run(take_turn(), operation, view_timeout);
  }

  /// Runs an allreduce of one small tensor, with its result, not yet divided, in `output`, which
  /// may be its input. Nothing, if it has to be done by `run`, in the same turn: the lane is busy
  /// or under repair, the backend does not take it, or the view changed meanwhile.
  std::optional<Result<Contributors>> run_small(const Turn& turn,
                                                const collectives::SmallCall& call,
                                                std::byte* output);

  /// Takes the lane: waits until a view is installed, the lane is not frozen and nobody else has
  /// it.
  Result<Ownership> acquire(Milliseconds view_timeout);

  /// Does what the view of `ownership` has to hand over. That may be the result of `operation`
  /// (null: none was interrupted): then the attempt is final. Otherwise its status is ok, or why
  /// the view ended: release the ownership and acquire again.
  Attempt resume(Ownership& ownership, Operation* operation);
  /// One attempt at `operation`, after `resume`. When it is not final, release the ownership and
  /// acquire again.
  Attempt attempt(Ownership& ownership, Operation& operation);

  /// Blocks until a member has something to say on this lane's links or `wake_fd` is readable.
  /// Fails like a link, or with kAborted when the view changes; then release and acquire again.
  Status wait(Ownership& ownership, int wake_fd);
  /// Tells the server that a link of the owned view failed, for failures met outside of `attempt`.
  void suspect(const Ownership& ownership, const Status& failure);

  /// Interrupts the owner; when there is none (any more), calls `on_quiet`. Again on every call.
  void freeze();
  /// The position of the first view that this worker was announced in: from then on it counts as a
  /// member, also if that view is replaced before it was installed. Only the first call counts.
  void begin_at(std::uint64_t position);
  /// Puts the lane into a new view and lets it go on. Only while frozen and quiet, or at the start.
  /// Does not block. A view that does not fit what is complete here ends the lane: `on_leave`.
  void install(std::shared_ptr<LaneView> view);
  /// From now on everything fails with `reason`. The first reason stays.
  void close(const Status& reason);
  /// This worker cannot go on in any view: closes the lane, and tells so (`on_leave`). Returns
  /// `why`. For the thread that runs the lane's operations, without an ownership.
  Status leave(const Status& why);
  /// The same where `timeout` ended the wait for a view in which to complete what had begun.
  Status leave_after(const Status& timeout);
  /// The same where an exception ended something that others take part in: they may have its
  /// outcome, or wait for this worker. Where even that fails, such as for lack of memory, the
  /// process ends, and others see it go.
  Status leave_for(const std::exception_ptr& exception) noexcept;

  std::uint64_t position() const;
  /// The kind of the call that is between its first attempt and its result, such as "allreduce";
  /// empty where there is none. Nothing where the call waits for the state of others, which takes
  /// as long as the program needs to save and load it.
  std::optional<std::string> call_under_way() const;
  /// The reason given to `close`; ok before.
  Status closed() const;

 private:
  bool available() const;  // with mutex_ held
  void release();
  Ledger::Step next() const;
  template <typename Run>
  auto or_leave(const Run& run);
  std::optional<Result<Contributors>> try_small(std::uint64_t position,
                                                const collectives::SmallCall& call,
                                                std::byte* output);
  Attempt try_resume(LaneView& view, Operation* operation);
  Attempt try_attempt(LaneView& view, Operation& operation);
  Status run_lent(collectives::Backend& backend, const collectives::Call& call);
  void keep_work();
  void settle(LaneView& view);
  Status hand_over(LaneView& view);
  Attempt deliver(Operation& operation, const std::shared_ptr<const Members>& members);
  Attempt deliver_error(std::uint64_t generation);
  Attempt end_as_lost(LaneView& view);
  Attempt end_in_error(LaneView& view, const Status& error);
  Status settle_error(LaneView& view);
  Status give_up(const Status& failure);
  Status check_result(LaneView& view, Operation& operation);
  Attempt interrupted(const LaneView& view, const Status& failure);
  void complete();
  void note_resumed();
  void repair_when_idle();

  const std::string name_;
  const Callbacks callbacks_;
  const std::shared_ptr<collectives::SpareBuffer> spare_;
  std::mutex order_mutex_;  // a Turn's: one unnamed operation at a time, in program order

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<LaneView> view_;
  Ledger ledger_;
  std::uint8_t begun_kind_ = 0;  // Fingerprint::kind of the operation that was begun last
  bool frozen_ = true;
  bool owned_ = false;
  int waiting_ = 0;      // threads in `acquire`
  bool resumed_ = true;  // an operation has been completed since `install`
  bool repair_wanted_ = false;
  Status closed_;
  bool left_ = false;  // `on_leave` was called

  // Touched by the owner only.
  collectives::Payload work_;                    // of the operation in flight
  std::shared_ptr<const Members> attempted_by_;  // latest attempt of the operation in flight
  transport::Fingerprint attempted_call_;        // that attempt's, where attempted_by_ is set
  collectives::Backend::Parcel kept_;            // result of operation position - 1

  // Hands results over while no thread of the user is in the lane. Started by the control thread
  // when it is needed first.
  std::thread repair_thread_;
};

}  // namespace elastic::coordinator
