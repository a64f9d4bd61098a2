#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/status.hpp"
#include "collectives/device/landings.hpp"
#include "collectives/device/staged_tensors.hpp"
#include "coordinator/bucket_tuning.hpp"
#include "coordinator/lane.hpp"
#include "coordinator/named_call.hpp"
#include "coordinator/negotiation.hpp"
#include "coordinator/note_routes.hpp"
#include "coordinator/wake_up.hpp"
#include "coordinator/work_state.hpp"
#include "elastic/types.hpp"
#include "timeline/timeline.hpp"

namespace elastic::coordinator {

/// The thread that runs the named operations of a worker. It agrees with the other members on an
/// order and on buckets: the Negotiator decides, and this class carries its notes. It packs the
/// tensors of a bucket and runs one allreduce for all of them on its lane.
///
/// The thread sleeps until a tensor is submitted or a note arrives, and sends nothing while no
/// tensor is submitted.
///
/// Any thread may call `submit`, `flush` and `drain`.
class Coordinator {
 public:
  struct Options {
    std::size_t bucket_bytes = 0;
    bool tunes_buckets = false;  ///< finds the size of buckets; begins with `bucket_bytes`
    Milliseconds view_timeout{120000};
    /// Called if a result that other members have cannot be copied to its tensors, with the reason:
    /// this worker must leave. Returns the error for the program.
    std::function<Status(const Status&)> leave_without_result = [](const Status& why) {
      return why;
    };
    /// Gets the times of the named tensors; may be null.
    timeline::Timeline* timeline = nullptr;
  };

  /// Check `status` first: if it is an error, no thread was started.
  Coordinator(Lane& lane, const Options& options);
  /// Requires that the lane is closed, which ends the thread. Open works fail with the lane's
  /// reason.
  ~Coordinator();

  const Status& status() const { return wake_up_->status(); }

  /// Submits tensors under `name`. Tensors with `staged` count as submitted when they have arrived,
  /// and all later submissions wait for them: buckets must not depend on when a device has
  /// finished.
  Result<std::shared_ptr<detail::WorkState>> submit(
      std::string name, std::vector<TensorView> tensors, ReduceOp op,
      const std::shared_ptr<device::StagedTensors>& staged = nullptr, Scale scale = Scale(1, 1));
  /// The same from `inputs` to `outputs`, which correspond one to one, in host memory.
  Result<std::shared_ptr<detail::WorkState>> submit(std::string name,
                                                    std::vector<ConstTensorView> inputs,
                                                    std::vector<TensorView> outputs, ReduceOp op);
  /// Submits a named call on tensors in host memory, which for `staged` ones is that of theirs:
  /// `conclude` copies their results back.
  Result<std::shared_ptr<detail::WorkState>> submit(
      NamedCall call, const std::shared_ptr<device::StagedTensors>& staged = nullptr);
  /// This worker has no more data: waits until all its named calls are complete, and tells the
  /// others then. Later submissions are refused until the join ends, which it does when all members
  /// have joined. `last` then has the rank that joined last; `conclude` is as in NamedCall.
  /// kInvalidArgument if a join is under way.
  Result<std::shared_ptr<detail::WorkState>> join(std::shared_ptr<int> last,
                                                  std::function<Status()> conclude);
  /// The program is about to block: it submits nothing more until an open tensor is complete.
  void flush();
  /// Waits until all tensors that the calling thread has submitted are complete; each Work has its
  /// own outcome. Does not wait for tensors of other threads: another member may submit those only
  /// after the step boundary at which this thread waits.
  void drain();
  /// A named call under way.
  struct UnderWay {
    std::string name;  ///< by which the ranks know it
    std::uint8_t kind = kAllreduceRequest;
    std::shared_ptr<const std::vector<WorkerId>> group = nullptr;  ///< as in NamedCall
  };
  /// The first, in the order of names, of the calls under way; nothing if there are none.
  std::optional<UnderWay> first_call() const;

 private:
  Result<std::shared_ptr<detail::WorkState>> submit(Submission submission);
  void loop();
  void serve_views();
  Status serve(Lane::Ownership& ownership);
  Status enter_view(Lane::Ownership& ownership);
  void take_submissions();
  std::vector<Submission> take_arrived() ELASTIC_REQUIRES(mutex_);
  Status exchange_notes(Lane::Ownership& ownership, bool& busy);
  Status take_note(transport::Mesh& mesh, int from, const std::vector<std::byte>& note);
  Status run_orders(Lane::Ownership& ownership, bool& busy);
  void take_orders();
  Operation* look_ahead(Lane::Ownership& ownership);
  Status negotiate(const Submission& submission);
  void tune_buckets(const Submission& next);
  void note_ordered(const OrderItem& order);
  void name_operation(const OrderItem& order);
  void record(const OrderItem& order, const Lane::Attempt& attempt);
  void finish(const Lane::Attempt& attempt);
  Result<std::shared_ptr<device::Landing>> bring_back(const OrderItem& order);
  Status conclude(const OrderItem& order);
  void complete(const std::string& name, Result<Contributors> outcome,
                std::shared_ptr<device::Landing> landing = nullptr);
  void look_for_stalls();
  Status outlast(const Status& timeout);
  void fail_all(const Status& reason);

  Lane& lane_;
  const Options options_;
  const std::shared_ptr<WakeUp> wake_up_ =
      std::make_shared<WakeUp>();  // shared with the callbacks that report arrivals
  device::Landings landings_;

  // Shared with the threads that submit.
  mutable Mutex mutex_;
  ConditionVariable completed_;
  /// Not yet taken by the coordinator thread.
  std::vector<Submission> submitted_ ELASTIC_GUARDED_BY(mutex_);
  /// A call under way, by its name.
  struct Caller {
    std::thread::id thread;  ///< that submitted it
    std::uint8_t kind;
    std::shared_ptr<const std::vector<WorkerId>> group;
  };
  std::map<std::string, Caller> names_ ELASTIC_GUARDED_BY(mutex_);
  int draining_ ELASTIC_GUARDED_BY(mutex_) = 0;      // threads in `drain`
  bool joining_ ELASTIC_GUARDED_BY(mutex_) = false;  // from the call of `join` to its end
  std::atomic<bool> open_{false};  // names_ is not empty; readable without the mutex
  /// The program blocked after the last submission that was taken.
  bool flush_ ELASTIC_GUARDED_BY(mutex_) = false;
  Status closed_ ELASTIC_GUARDED_BY(mutex_);

  // Owned by the coordinator thread.
  Negotiator negotiator_;
  std::optional<BucketTuning> tuning_;
  NoteRoutes routes_;  // of the present view
  Submissions pending_;
  std::deque<OrderItem> orders_;        // agreed, not complete
  std::unique_ptr<Operation> running_;  // of the first order; kept through a view change, which may
                                        // bring its result
  std::unique_ptr<Operation> next_;     // of the second order, which may have begun in this view
  Status look_ahead_failure_;           // of links, or of the negotiation
  TimePoint run_since_{};               // the begin of the latest attempt at the first order
  std::uint64_t generation_ = 0;        // of the view that the negotiator is in
  std::shared_ptr<const Members> members_;  // of that view
  TimePoint last_progress_{};

  std::thread thread_;
};

}  // namespace elastic::coordinator
