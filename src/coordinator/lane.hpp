#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/status.hpp"
#include "collectives/backend/backend.hpp"
#include "collectives/backend/spare_buffer.hpp"
#include "coordinator/lane_view.hpp"
#include "coordinator/ledger.hpp"
#include "coordinator/operation.hpp"
#include "coordinator/small_attempt.hpp"
#include "elastic/results.hpp"
#include "timeline/lane_trace.hpp"

namespace elastic::coordinator {

/// A lane: a sequence of operations of one worker, with its own links and its own position, through
/// all views of the job. See docs/architecture.md.
///
/// The Lane does what its Ledger decides. It runs operations and keeps the last result until the
/// next operation is complete. `freeze` stops it. After a view change it either takes the
/// interrupted operation's result from a member that has it (commit), or runs the operation again
/// from the intact input (replay).
///
/// Threads: any thread may call `run`. The control thread calls `freeze`, `install` and `close`.
/// Only the thread that owns the lane (see Ownership) touches the view's backend and mesh.
class Lane {
 public:
  struct Callbacks {
    /// The lane is frozen, and sends and completes nothing more in the present generation.
    std::function<void(std::uint64_t position, std::string needs)> on_quiesced;
    /// A link of `generation` failed.
    std::function<void(std::uint64_t generation, std::string incarnation, std::string reason)>
        on_suspect;
    /// The first operation after `install` is complete. May be empty.
    std::function<void()> on_resumed = {};
    /// This worker cannot continue in any view. Called at most once. May be empty.
    std::function<void(const Status& why)> on_leave = {};
  };

  /// Temporary possession of the lane by one thread. Meanwhile `freeze` only interrupts the owner,
  /// and `on_quiesced` comes on release.
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

  /// The end of an attempt at an operation. It is final if the operation has its outcome: success,
  /// or an error that all ranks share and are known to have. Otherwise a view change has
  /// interrupted it, and the operation has to be tried again.
  struct Attempt {
    bool final = false;
    Status status;
    Contributors contributors;
  };

  /// `spare` saves what zero-copy operations overwrite. A worker's lanes share it, so that together
  /// they need no more than the largest operation, unless two are in flight. `timeline`, if any,
  /// gets the operations, as those of lane `number`.
  Lane(std::string name, Callbacks callbacks,
       std::shared_ptr<collectives::SpareBuffer> spare =
           std::make_shared<collectives::SpareBuffer>(),
       timeline::Timeline* timeline = nullptr, std::size_t number = 0);
  ~Lane();

  /// Keeps calls of several threads in turn: each holds one from its first attempt to its end.
  using Turn = std::unique_lock<std::timed_mutex>;
  Turn take_turn();

  /// Runs `operation` to its end, through as many views as that takes.
  /// \returns the contributors, or an error:
  /// - the operation's own, if that is its result on every rank
  /// - kTimeout: no new view came within `view_timeout`. A call that has not begun leaves nothing
  ///   behind. If it has begun, this worker leaves the job, because other ranks may have the result
  /// - kAborted: the operation cannot begin in the present view; nothing was done
  /// - the reason given to `close`
  Result<Contributors> run(const Turn& turn, Operation& operation, Milliseconds view_timeout);
  Result<Contributors> run(Operation& operation, Milliseconds view_timeout) {
    return run(take_turn(), operation, view_timeout);
  }

  /// Runs a collective of one small tensor.
  /// \returns nothing if the caller has to use `run` in the same turn instead: the lane is busy or
  /// under repair, the backend does not take the call, or the view is or becomes another one.
  std::optional<Result<Contributors>> run_small(const Turn& turn, const SmallAttempt& small);

  /// Takes the lane: waits until a view is installed, the lane is not frozen, and no other thread
  /// owns it.
  Result<Ownership> acquire(Milliseconds view_timeout);

  /// Does the hand-over of the view of `ownership`. If it brings the result of `operation` (null:
  /// none was interrupted), the attempt is final. Otherwise its status is ok, or says why the view
  /// ended: then release the ownership and acquire again.
  Attempt resume(Ownership& ownership, Operation* operation);
  /// The operation that the owner will try next, and nothing before it; null if that is not known
  /// yet. It may begin early.
  using Upcoming = std::function<Operation*()>;
  /// Tries `operation` once, after `resume`. If the attempt is not final, release the ownership and
  /// acquire again. `upcoming` is asked meanwhile; it may be empty.
  Attempt attempt(Ownership& ownership, Operation& operation, const Upcoming& upcoming = {});

  /// Blocks until something arrives on this lane's links or `wake_fd` is readable. Fails with a
  /// link's error, or with kAborted when the view changes: then release and acquire again.
  Status wait(Ownership& ownership, int wake_fd);
  /// Reports a failed link of the owned view to the server, for failures outside of `attempt`.
  void suspect(const Ownership& ownership, const Status& failure);

  /// Freezes the lane and interrupts its owner. Calls `on_quiesced` once the lane has no owner;
  /// repeated calls repeat it.
  void freeze();
  /// See Ledger::begin_at.
  void begin_at(std::uint64_t position);
  /// Enters a new view and unfreezes the lane. Requires that the lane is quiesced, or new.
  /// Does not block. A view that does not fit the operations completed here ends the lane:
  /// `on_leave`.
  void install(std::shared_ptr<LaneView> view);
  /// From now on all calls fail with `reason`. The first reason stays.
  void close(const Status& reason);
  /// This worker cannot continue in any view: closes the lane and calls `on_leave`. Returns `why`.
  /// For the thread that runs the lane's operations; it need not own the lane.
  Status leave(const Status& why);
  /// As `leave`, after `timeout` ended the wait for a view in which to complete an operation that
  /// had begun.
  Status leave_after(const Status& timeout);
  /// As `leave`, after an exception ended an operation that others take part in: they may have its
  /// outcome, or wait for this worker. If this fails too, such as for lack of memory, the process
  /// ends, and the others notice its death.
  Status leave_for(const std::exception_ptr& exception) noexcept;

  std::uint64_t position() const;
  /// Records the operations. Only the owner calls functions for the thread that records.
  timeline::LaneTrace& trace() { return trace_; }
  const timeline::LaneTrace& trace() const { return trace_; }
  /// The kind of the call that is between its first attempt and its result, such as "allreduce";
  /// empty if there is none. Nothing for a call that synchronises state: it takes as long as the
  /// program needs to save and load that state, and is no stall.
  std::optional<std::string> call_under_way() const;
  /// The reason given to `close`; ok before it.
  Status closed() const;

 private:
  bool available() const ELASTIC_REQUIRES(mutex_);
  void release();
  bool is_open() const;
  Ledger::Step next() const;
  template <typename Run>
  auto or_leave(const Run& run);
  std::optional<Result<Contributors>> try_small(LaneView& view, std::uint64_t position,
                                                const SmallAttempt& small);
  Attempt try_resume(LaneView& view, Operation* operation);
  Attempt try_attempt(LaneView& view, Operation& operation, const Upcoming& upcoming);
  Attempt perform(LaneView& view, Operation& operation, const collectives::Call& call);
  void end_early(LaneView& view);
  Status run_lent(collectives::Backend& backend, const collectives::Call& call);
  void keep_work();
  void settle(LaneView& view);
  Status hand_over(LaneView& view);
  Attempt deliver(Operation& operation, const std::shared_ptr<const Members>& members);
  Attempt deliver_error(std::uint64_t generation);
  Attempt end_as_lost(LaneView& view, std::uint32_t root);
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
  /// Turn holds it: one unnamed operation at a time, in program order. Guards no field.
  std::timed_mutex order_mutex_;

  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::shared_ptr<LaneView> view_ ELASTIC_GUARDED_BY(mutex_);
  Ledger ledger_ ELASTIC_GUARDED_BY(mutex_);
  /// The latest operation that began.
  transport::Fingerprint begun_call_ ELASTIC_GUARDED_BY(mutex_);
  bool frozen_ ELASTIC_GUARDED_BY(mutex_) = true;
  bool owned_ ELASTIC_GUARDED_BY(mutex_) = false;
  int waiting_ ELASTIC_GUARDED_BY(mutex_) = 0;  // threads in `acquire`
  bool repair_wanted_ ELASTIC_GUARDED_BY(mutex_) = false;
  Status closed_ ELASTIC_GUARDED_BY(mutex_);
  bool left_ ELASTIC_GUARDED_BY(mutex_) = false;  // `on_leave` was called

  // Only the owner touches these, and `install`, while there is none.
  timeline::LaneTrace trace_;
  bool resumed_ = true;                          // an operation has been completed since `install`
  collectives::Payload work_;                    // the operation in flight
  std::shared_ptr<const Members> attempted_by_;  // members of its latest attempt
  transport::Fingerprint attempted_call_;  // fingerprint of that attempt, if attempted_by_ is set
  collectives::Backend::Parcel kept_;      // the result of operation position - 1

  // Hands results over while no thread of the program is in the lane. The control thread starts it
  // at the first hand-over that needs it.
  std::thread repair_thread_;
};

}  // namespace elastic::coordinator
