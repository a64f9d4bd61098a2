#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "base/status.hpp"
#include "collectives/device/devices.hpp"
#include "collectives/transport/shm/arena.hpp"
#include "coordinator/coordinator.hpp"
#include "coordinator/lane.hpp"
#include "coordinator/operation.hpp"
#include "elastic/context.hpp"
#include "runtime/allreduces.hpp"
#include "runtime/backends.hpp"
#include "runtime/call_queue.hpp"
#include "runtime/call_scope.hpp"
#include "runtime/collectives.hpp"
#include "runtime/control.hpp"
#include "runtime/identity.hpp"
#include "runtime/live_context.hpp"
#include "runtime/membership_status.hpp"
#include "runtime/messages.hpp"
#include "runtime/open_steps.hpp"
#include "runtime/operation_runner.hpp"
#include "runtime/owned_blocks.hpp"
#include "runtime/step_clock.hpp"
#include "runtime/training_run.hpp"
#include "runtime/worker_session.hpp"

namespace elastic {

/// The parts of one worker.
///
/// Any thread, as Context says.
class Context::Impl final : public runtime::OperationRunner, public runtime::CallScope {
 public:
  explicit Impl(Options options);
  ~Impl() override;

  /// Leaves the job; afterwards only destruction is allowed.
  void shutdown();
  /// Leaves the job as the process ends, without a wait for the others. Calls under way end with
  /// errors. Nothing after `shutdown`.
  void leave_at_once();

  RunOutcome run(State& state, const std::function<void()>& body);

  const Options& options() const { return options_; }
  runtime::Control& control() const { return present_.load()->control(); }
  coordinator::Coordinator& coordinator() const { return present_.load()->coordinator(); }

  /// Starts the timeline of `path`, for the worker of this identity.
  void start_timeline(const std::string& path, const runtime::Identity& identity);
  timeline::Timeline& timeline() { return timeline_; }
  runtime::StepClock& step_clock() { return step_clock_; }
  runtime::Allreduces& allreduces() override { return allreduces_; }
  runtime::Collectives& collectives() override { return collectives_; }
  const std::shared_ptr<runtime::OpenSteps>& open_steps() const { return open_steps_; }

  std::shared_ptr<const runtime::ViewSummary> view() const { return control().view(); }
  std::shared_ptr<const coordinator::Members> members() const override;
  /// The same as `view`, for the program, which may lay out blocks by it: see `seen`.
  std::shared_ptr<const runtime::ViewSummary> show_view();
  Contributors seen() const override;

  /// Blocking calls come after those that `queue` has started.
  void flush() override {
    coordinator().flush();
    queue_.wait();
  }
  Result<Contributors> run(coordinator::Operation& operation) override;
  Result<Contributors> run(const coordinator::SmallAttempt& small,
                           const MakeOperation& make) override;
  std::string where() const override { return {}; }
  Status leave_without_result(const Status& why) override {
    return present_.load()->leave_without_result(why);
  }
  device::Fetch fetch() const override {
    return backends_.work_on_devices() ? device::Fetch::kOnDemand : device::Fetch::kAtOnce;
  }

  Contributors allreduce(ConstTensorView in, TensorView out, ReduceOp op) override;
  Contributors scaled_allreduce(ConstTensorView in, TensorView out, ReduceOp op,
                                Scale scale) override;
  Contributors barrier() override;
  Work submit(const char* call, std::string_view name, std::span<const TensorView> tensors,
              ReduceOp op, Scale scale, CudaStream stream) override;
  Work submit(const char* call, std::string_view name, const ConstTensorView& in,
              const TensorView& out, ReduceOp op) override;
  Work submit(const char* call, const ConstTensorView& tensor, NamedCall named) override;
  Work submit(const char* call, std::string_view name, const ConstTensorView& in,
              const TensorView& out, CudaStream stream, const MakeNamed& make) override;
  Work queue(const char* call, std::function<Contributors()> make) override;
  runtime::OwnedBlocks own(const BlocksView& blocks) const override { return {blocks, *this}; }
  Work send(const ConstTensorView& data, const Root& peer, int tag, CudaStream stream) override {
    return send({}, *members(), data, peer, tag, stream);
  }
  Work receive(const TensorView& out, const Root& peer, int tag, CudaStream stream,
               const std::shared_ptr<ReceivedMessage>& result) override {
    return receive({}, *members(), out, peer, tag, stream, result);
  }
  /// Waits for the calls of this thread that `queue` has started, here and in groups.
  void finish_queued() {
    queue_.wait_for_own();
    finish_groups();
  }

  JoinOutcome join();
  /// The joins that have ended here: the same on all members.
  std::uint64_t joins() const { return joins_.load(); }

  // For groups. `peer` is one of `members`.
  Work send(const std::string& group, const coordinator::Members& members,
            const ConstTensorView& data, const Root& peer, int tag, CudaStream stream);
  Work receive(const std::string& group, const coordinator::Members& members, const TensorView& out,
               const Root& peer, int tag, CudaStream stream,
               const std::shared_ptr<ReceivedMessage>& result);
  using Staged = std::shared_ptr<device::StagedTensors>;
  /// Host memory for the tensors of a named call, as soon as the device has made the inputs; null
  /// if all of them are in host memory.
  Staged stage_named(const char* call, std::span<const ConstTensorView> inputs,
                     std::span<const TensorView> outputs, CudaStream stream,
                     device::Fetch when = device::Fetch::kAtOnce);
  /// Copies at most `bytes` of each result to its device. The error is that of this worker, which
  /// has left the job.
  Status bring_back(const Staged& staged, std::size_t bytes);
  void set_groups(std::shared_ptr<Groups> groups) { groups_ = std::move(groups); }
  device::Devices& devices() { return devices_; }
  void check_lies_on_host(const ConstTensorView& tensor) const;
  /// Checks what named calls demand, `name` being that of the call; and a tensor of it.
  void prepare_named(const char* call, std::string_view name) const;
  void prepare_named(const char* call, std::string_view name, const ConstTensorView& tensor) const;

  Allocation allocate(std::size_t bytes);

 private:
  void stop_groups();
  void finish_groups();

  /// Trains, and joins again as a new worker after an eviction, or after a timeout with which this
  /// worker left the job.
  RunOutcome train(State& state, const std::function<void()>& body);
  /// Joins again as a new worker.
  void rejoin();
  void become(runtime::Identity identity);

  /// Why this worker's latest `run` did not finish; empty if it did.
  std::string unfinished() const {
    const MutexLock lock(mutex_);
    return unfinished_;
  }
  void set_unfinished(std::string why) {
    const MutexLock lock(mutex_);
    unfinished_ = std::move(why);
  }

  runtime::LiveContext live_;  // first: a forked child reads no secret and starts no server
  Options options_;
  runtime::StepClock step_clock_;
  /// Shared by all sessions: memory that the program has allocated outlives them.
  std::shared_ptr<transport::Arena> arena_;
  Status no_arena_;  // why there is no arena
  runtime::Backends backends_;
  /// Shared by all sessions: their coordinators wait for tensors of devices.
  device::Devices devices_{"", std::make_shared<device::StallWatch>(options_.stall_warning)};
  runtime::Allreduces allreduces_{devices_, *this};
  runtime::Collectives collectives_{devices_, *this};
  timeline::Timeline timeline_;
  /// Shared with the StepGroups, which may end later.
  const std::shared_ptr<runtime::OpenSteps> open_steps_ = std::make_shared<runtime::OpenSteps>();
  /// The last is the present one. The others are closed, and stay for threads that still use them.
  std::vector<std::unique_ptr<runtime::WorkerSession>> sessions_;
  std::atomic<runtime::WorkerSession*> present_{nullptr};
  runtime::StateLayout state_layout_;  // of the thread that calls `run`
  std::atomic<bool> running_{false};
  std::shared_ptr<Groups> groups_;
  runtime::Messages messages_;
  runtime::CallQueue queue_{[this] { coordinator().flush(); }};
  std::atomic<std::uint64_t> joins_{0};
  std::atomic<std::uint64_t> seen_generation_{0};
  mutable Mutex mutex_;
  Contributors seen_ ELASTIC_GUARDED_BY(mutex_);  // of generation seen_generation_
  std::string unfinished_ ELASTIC_GUARDED_BY(mutex_);
};

}  // namespace elastic
