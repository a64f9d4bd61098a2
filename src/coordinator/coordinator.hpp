#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "collectives/device/staged.hpp"
#include "coordinator/lane.hpp"
#include "coordinator/negotiation.hpp"
#include "coordinator/wake_up.hpp"
#include "coordinator/work_state.hpp"
#include "elastic/types.hpp"

namespace elastic::coordinator {

/// The thread that runs named operations: agrees with the other members on an order and on buckets
/// (Negotiator decides, this carries the notes), packs the tensors of a bucket together and runs
/// one allreduce for all of them on its lane.
///
/// Sleeps until a tensor is submitted or a note arrives; sends nothing while nothing is submitted.
///
/// `submit`, `flush` and `drain` may be called from any thread.
class Coordinator {
 public:
  struct Options {
    std::size_t bucket_bytes = 0;
    Milliseconds stall_warning{30000};
    Milliseconds view_timeout{120000};
    /// A result that others have cannot be brought to its tensors, and why: this worker must leave.
    /// Returns what the program is told.
    std::function<Status(const Status&)> give_up = [](const Status& why) { return why; };
  };

  /// Look at `status` first: where it is an error nothing was started.
  Coordinator(Lane& lane, const Options& options);
  /// The lane must have been closed: that is what ends the thread. Open works fail with its reason.
  ~Coordinator();

  const Status& status() const { return wake_up_->status(); }

  /// Tensors that are `staged` count as submitted when they have arrived; and so do those that
  /// were submitted after them, so that buckets do not depend on when a device is done.
  Result<std::shared_ptr<detail::WorkState>> submit(
      std::string name, std::vector<TensorView> tensors, ReduceOp op,
      const std::shared_ptr<device::Staged>& staged = nullptr);
  /// The program is about to block: no more tensors will come before what is open is done.
  void flush();
  /// Waits until what the calling thread has submitted is complete. Other threads' tensors are not
  /// waited for: another member may only get to them after the step boundary at which this thread
  /// waits. Individual failures are their Works' business.
  void drain();
  /// The first, in the order of names, of the tensors under way; empty where there are none.
  std::string first_name() const;

 private:
  struct Submission {
    std::string name;
    std::vector<TensorView> tensors;
    ReduceOp op = ReduceOp::kSum;
    std::shared_ptr<detail::WorkState> work;
    std::shared_ptr<device::Staged> staged;  ///< null: the tensors lie where the program has them
    bool flush_after = false;                ///< the program blocked before it submitted more
    TimePoint since = Clock::now();
  };

  void loop();
  void serve_views();
  Status serve(Lane::Ownership& ownership);
  Status enter_view(Lane::Ownership& ownership);
  void take_submissions();
  std::vector<Submission> take_arrived();
  Status exchange_notes(Lane::Ownership& ownership, bool& busy);
  Status run_orders(Lane::Ownership& ownership, bool& busy);
  std::unique_ptr<Operation> operation_for(const OrderItem& order) const;
  void finish(const Lane::Attempt& attempt);
  Status bring_back(const OrderItem& order);
  void complete(const std::string& name, Result<Contributors> outcome);
  void look_for_stalls();
  Status outlast(const Status& timeout);
  void fail_all(const Status& reason);

  Lane& lane_;
  const Options options_;
  const std::shared_ptr<WakeUp> wake_up_ =
      std::make_shared<WakeUp>();  // also of who reports arrivals

  // Shared with the threads that submit.
  mutable std::mutex mutex_;
  std::condition_variable completed_;
  std::vector<Submission> submitted_;  // not seen by the coordinator thread yet, or not arrived
  std::map<std::string, std::thread::id> names_;  // under way, and the thread that submitted each
  int draining_ = 0;                              // threads in `drain`
  std::atomic<bool> open_{false};  // whether names_ has any; to be asked without the mutex
  bool flush_ = false;             // the program blocked after what the coordinator thread has seen
  Status closed_;

  // Owned by the coordinator thread.
  Negotiator negotiator_;
  std::map<std::string, Submission> pending_;
  std::deque<OrderItem> orders_;        // agreed, not complete
  std::unique_ptr<Operation> running_;  // of the first of them; kept through a view change, which
                                        // may bring its result
  std::uint64_t generation_ = 0;        // that the negotiator is in
  TimePoint last_progress_{};
  Duration warned_after_{0};

  std::thread thread_;
};

}  // namespace elastic::coordinator
