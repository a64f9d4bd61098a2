#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/status.hpp"
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
  };

  Coordinator(Lane& lane, const Options& options);
  /// The lane must have been closed: that is what ends the thread. Open works fail with its reason.
  ~Coordinator();

  Result<std::shared_ptr<detail::WorkState>> submit(std::string name,
                                                    std::vector<TensorView> tensors, ReduceOp op);
  /// The program is about to block: no more tensors will come before what is open is done.
  void flush();
  /// Waits until nothing is under way. Individual failures are their Works' business.
  void drain();

 private:
  struct Submission {
    std::string name;
    std::vector<TensorView> tensors;
    ReduceOp op = ReduceOp::kSum;
    std::shared_ptr<detail::WorkState> work;
    bool flush_after = false;  ///< the program blocked before it submitted more
  };

  void loop();
  Status serve(Lane::Ownership& ownership);
  Status enter_view(Lane::Ownership& ownership);
  void take_submissions();
  Status exchange_notes(Lane::Ownership& ownership, bool& busy);
  Status run_orders(Lane::Ownership& ownership, bool& busy);
  std::unique_ptr<Operation> operation_for(const OrderItem& order) const;
  void finish(const Lane::Attempt& attempt);
  void complete(const std::string& name, Result<Contributors> outcome);
  void look_for_stalls();
  void fail_all(const Status& reason);

  Lane& lane_;
  const Options options_;
  WakeUp wake_up_;

  // Shared with the threads that submit.
  std::mutex mutex_;
  std::condition_variable idle_;
  std::vector<Submission> submitted_;  // not seen by the coordinator thread yet
  std::set<std::string> names_;        // under way
  std::atomic<bool> open_{false};      // whether names_ has any; to be asked without the mutex
  bool flush_ = false;  // the program blocked after what the coordinator thread has seen
  Status closed_;

  // Owned by the coordinator thread.
  Negotiator negotiator_;
  std::map<std::string, Submission> pending_;
  std::deque<OrderItem> orders_;        // agreed, not complete
  std::unique_ptr<Operation> running_;  // of the first of them; kept through a view change, which
                                        // may bring its result
  std::uint64_t generation_ = 0;        // that the negotiator is in
  TimePoint last_progress_{};
  TimePoint next_stall_warning_{};

  std::thread thread_;
};

}  // namespace elastic::coordinator
