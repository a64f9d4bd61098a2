#include "elastic/context.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/config/environment.hpp"
#include "base/config/options.hpp"
#include "base/dtype_names.hpp"
#include "base/exception_text.hpp"
#include "base/in_callback.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/openssl_check.hpp"
#include "collectives/device/devices.hpp"
#include "collectives/kernels/reduce.hpp"
#include "collectives/transport/shm/arena.hpp"
#include "coordinator/coordinator.hpp"
#include "coordinator/operation.hpp"
#include "runtime/allreduces.hpp"
#include "runtime/backends.hpp"
#include "runtime/collectives.hpp"
#include "runtime/control.hpp"
#include "runtime/join_job.hpp"
#include "runtime/live_context.hpp"
#include "runtime/operation_runner.hpp"
#include "runtime/raise.hpp"
#include "runtime/step_clock.hpp"
#include "runtime/step_log.hpp"
#include "runtime/tensor_check.hpp"
#include "runtime/training_run.hpp"
#include "runtime/worker_session.hpp"

namespace elastic {

using coordinator::Operation;

namespace {

/// A worker that is evicted so often without a finished step in between gives up.
constexpr int kRejoinsInVain = 5;

}  // namespace

/// The parts of one worker.
class Context::Impl final : public runtime::OperationRunner {
 public:
  explicit Impl(Options options)
      : options_(runtime::take(resolve(std::move(options), read_environment()))) {
    log::set_level(options_.log_level);
    runtime::raise_if(check_openssl(options_.encrypt));
    if (auto arena = transport::Arena::create(); arena.ok()) {
      arena_ = std::move(arena).value();
    } else {
      no_arena_ = arena.status();  // needed by `allocate` only
    }
    backends_ = runtime::take(runtime::Backends::load(options_, read_environment(), arena_));
    runtime::Identity identity = runtime::take(runtime::find_job(options_, read_environment()));
    runtime::raise_if(backends_.start(runtime::kLanes, identity.under_mpirun));
    become(std::move(identity));
  }

  ~Impl() override {
    control().leave_at_once(
        running_ ? "its process exited inside elastic::run, without elastic::shutdown"
                 : unfinished());
    control().close();
  }

  /// Leaves the job; afterwards only destruction is allowed.
  void shutdown() {
    refuse_in_callback("elastic::shutdown");
    if (running_) {
      throw Error(ErrorCode::kInvalidArgument,
                  "elastic::shutdown was called inside elastic::run; return from its body first");
    }
    coordinator().flush();
    coordinator().drain();
    control().leave(unfinished());
    control().close();
  }

  /// Why this worker's latest `run` did not finish; empty if it did.
  std::string unfinished() const {
    const MutexLock lock(mutex_);
    return unfinished_;
  }
  void set_unfinished(std::string why) {
    const MutexLock lock(mutex_);
    unfinished_ = std::move(why);
  }

  RunOutcome run(State& state, const std::function<void()>& body);
  /// Trains, and joins again as a new worker after an eviction.
  RunOutcome train(State& state, const std::function<void()>& body);

  /// Joins again as a new worker, after an eviction.
  void rejoin() {
    runtime::Identity identity = control().identity();
    if (const auto last = view()) identity.last_generation = last->members->generation;
    runtime::draw_incarnation(identity);
    control().stop();
    become(std::move(identity));
  }

  const Options& options() const { return options_; }
  runtime::Control& control() const { return present_.load()->control(); }
  coordinator::Coordinator& coordinator() const { return present_.load()->coordinator(); }

  runtime::StepClock& step_clock() { return step_clock_; }
  runtime::Allreduces& allreduces() { return allreduces_; }
  runtime::Collectives& collectives() { return collectives_; }

  std::shared_ptr<const runtime::ViewSummary> view() const { return control().view(); }

  std::shared_ptr<const coordinator::Members> members() const override {
    const auto present = view();
    if (!present) {
      throw Error(ErrorCode::kNotInitialized,
                  "this worker is joining a running job: collectives are for members; enter "
                  "elastic::run first");
    }
    return present->members;
  }

  void flush() override { coordinator().flush(); }

  Result<Contributors> run(Operation& operation) override {
    refuse_in_callback("a collective");
    const runtime::Blocked blocked;
    (void)members();
    flush();
    return control().lane(runtime::kUnnamedLane).run(operation, options_.view_timeout);
  }

  Status give_up(const Status& why) override { return present_.load()->leave_without_result(why); }

  device::Fetch fetch() const override {
    return backends_.work_on_devices() ? device::Fetch::kOnDemand : device::Fetch::kAtOnce;
  }

  Contributors allreduce(ConstTensorView in, TensorView out, ReduceOp op) {
    refuse_in_callback("allreduce");
    check_lies_on_host(in);
    check_lies_on_host(out);
    const runtime::Blocked blocked;
    flush();
    coordinator::Lane& lane = control().lane(runtime::kUnnamedLane);
    const coordinator::Lane::Turn turn = lane.take_turn();
    if (auto small = allreduce_small(lane, turn, in, out, op)) return *std::move(small);
    (void)members();
    coordinator::AllreduceOperation operation({in}, {out}, op);
    return runtime::take(lane.run(turn, operation, options_.view_timeout));
  }

  Allocation allocate(std::size_t bytes) {
    if (bytes == 0) return {};
    runtime::raise_if(no_arena_);
    std::byte* const memory = runtime::take(arena_->allocate(bytes));
    return {std::shared_ptr<std::byte>(
                memory, [arena = arena_, bytes](std::byte* its) { arena->free(its, bytes); }),
            bytes};
  }

  /// `call`: what the caller has called, for messages.
  Work submit(const char* call, std::string_view name, std::span<const TensorView> tensors,
              ReduceOp op, CudaStream stream) {
    refuse_in_callback(call);
    (void)members();
    runtime::check_group(tensors, call);
    runtime::check(op, tensors, call);
    if (runtime::any_on_device(tensors)) {
      const std::vector<ConstTensorView> inputs(tensors.begin(), tensors.end());
      const auto staged = runtime::take(devices_.stage("allreduce '" + std::string(name) + "'",
                                                       inputs, tensors, stream, fetch()));
      runtime::raise_if(staged->start());
      return Work(
          runtime::take(coordinator().submit(std::string(name), staged->outputs(), op, staged)));
    }
    runtime::check_no_stream(stream);
    for (const TensorView& tensor : tensors) check_lies_on_host(tensor);
    return Work(runtime::take(
        coordinator().submit(std::string(name), {tensors.begin(), tensors.end()}, op)));
  }

  void check_lies_on_host(const ConstTensorView& tensor) const {
    runtime::raise_if(devices_.check_host(tensor));
  }

 private:
  /// Nothing if the caller has to use `run`.
  static std::optional<Contributors> allreduce_small(coordinator::Lane& lane,
                                                     const coordinator::Lane::Turn& turn,
                                                     ConstTensorView in, TensorView out,
                                                     ReduceOp op) {
    const collectives::SmallCall call{in.dtype,
                                      op,
                                      {static_cast<const std::byte*>(in.data), in.bytes()},
                                      coordinator::allreduce_fingerprint(in.dtype, op, in.count)};
    auto* const result = static_cast<std::byte*>(out.data);
    auto done = lane.run_small(turn, call, result);
    if (!done) return std::nullopt;
    Contributors contributors = runtime::take(std::move(*done));
    if (op == ReduceOp::kAverage) {
      kernels::divide(out.dtype, result, out.count,
                      static_cast<std::uint32_t>(contributors.size()));
    }
    return contributors;
  }

  void become(runtime::Identity identity) {
    incarnations_.push_back(
        std::make_unique<runtime::WorkerSession>(std::move(identity), options_, backends_, arena_));
    present_.store(incarnations_.back().get());
  }

  runtime::LiveContext live_;  // first: a forked child reads no secret and starts no server
  Options options_;
  runtime::StepClock step_clock_;
  /// Shared by all incarnations: memory that the program has allocated outlives them.
  std::shared_ptr<transport::Arena> arena_;
  Status no_arena_;  // why there is no arena
  runtime::Backends backends_;
  /// Shared by all incarnations: their coordinators wait for tensors of devices.
  device::Devices devices_{"", std::make_shared<device::StallWatch>(options_.stall_warning)};
  runtime::Allreduces allreduces_{devices_, *this};
  runtime::Collectives collectives_{devices_, *this};
  /// The last is the present one. The others are closed, and stay for threads that still use them.
  std::vector<std::unique_ptr<runtime::WorkerSession>> incarnations_;
  std::atomic<runtime::WorkerSession*> present_{nullptr};
  runtime::StateLayout state_layout_;  // of the thread that calls `run`
  std::atomic<bool> running_{false};
  mutable Mutex mutex_;
  std::string unfinished_ ELASTIC_GUARDED_BY(mutex_);
};

Context::Context(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Context::~Context() = default;

void Context::shutdown() {
  impl_->shutdown();
}

int Context::rank() const {
  const auto view = impl_->view();
  return view ? view->members->rank : -1;
}
int Context::size() const {
  const auto view = impl_->view();
  return view ? view->members->size() : 0;
}
int Context::local_rank() const {
  const auto view = impl_->view();
  return view ? view->local_rank : impl_->control().identity().local_rank;
}
int Context::local_size() const {
  const auto view = impl_->view();
  return view ? view->local_size : 0;
}
std::uint64_t Context::generation() const {
  const auto view = impl_->view();
  return view ? view->members->generation : 0;
}
WorkerId Context::id() const {
  return impl_->control().identity().id;
}
Tuning Context::tuning() const {
  return impl_->control().tuning();
}
const Options& Context::options() const {
  return impl_->options();
}
StepTimes Context::step_times() const {
  return impl_->step_clock().times();
}
ViewChange Context::last_view_change() const {
  return impl_->control().view_changes().latest();
}
ResizePolicy Context::resize_policy() const {
  return impl_->options().resize_policy;
}
Compression Context::compression() const {
  return find_compression(impl_->options().compression).value();
}

Allocation Context::allocate(std::size_t bytes) {
  return impl_->allocate(bytes);
}

Contributors Context::allreduce(ConstTensorView in, TensorView out, ReduceOp op,
                                CudaStream stream) {
  runtime::check(in, "allreduce", "input");
  runtime::check(out, "allreduce", "output");
  runtime::check(op, in.dtype, "allreduce");
  if (in.count != out.count || in.dtype != out.dtype) {
    throw Error(ErrorCode::kInvalidArgument, "allreduce: the input is " + std::to_string(in.count) +
                                                 " " + dtype_name(in.dtype) + " and the output " +
                                                 std::to_string(out.count) + " " +
                                                 dtype_name(out.dtype) + "; they must be alike");
  }
  runtime::check_apart(in, out, "allreduce");
  if (device::on_device(in) || device::on_device(out)) {
    runtime::check_same_device(in, out, "allreduce");
    return impl_->allreduces().staged({&in, 1}, {&out, 1}, op, stream);
  }
  runtime::check_no_stream(stream);
  return impl_->allreduce(in, out, op);
}

Contributors Context::grouped_allreduce(std::span<const TensorView> tensors, ReduceOp op,
                                        CudaStream stream) {
  runtime::check_group(tensors, "grouped_allreduce");
  runtime::check(op, tensors, "grouped_allreduce");
  return impl_->allreduces().grouped(tensors, op, stream);
}

Contributors Context::cast_allreduce(std::span<const CastTensor> tensors, ReduceOp op,
                                     CudaStream stream) {
  return impl_->allreduces().cast(tensors, op, stream);
}

Work Context::allreduce_async(std::string_view name, TensorView data, ReduceOp op,
                              CudaStream stream) {
  return impl_->submit("allreduce_async", name, {&data, 1}, op, stream);
}

Work Context::grouped_allreduce_async(std::string_view name, std::span<const TensorView> tensors,
                                      ReduceOp op, CudaStream stream) {
  return impl_->submit("grouped_allreduce_async", name, tensors, op, stream);
}

Contributors Context::broadcast(TensorView data, int root, CudaStream stream) {
  return impl_->collectives().broadcast(data, root, stream);
}

Contributors Context::allgather(ConstTensorView block, const TakeGathered& take,
                                CudaStream stream) {
  return impl_->collectives().allgather(block, take, stream);
}

GatheredBlocks Context::allgather(ConstTensorView block, TensorView out, CudaStream stream) {
  return impl_->collectives().allgather(block, out, stream);
}

Contributors Context::reduce_scatter(ConstTensorView data, ReduceOp op, const TakeScattered& take,
                                     CudaStream stream) {
  runtime::check(op, data.dtype, "reduce_scatter");
  return impl_->collectives().reduce_scatter(data, op, take, stream);
}

ScatteredPart Context::reduce_scatter(ConstTensorView data, TensorView out, ReduceOp op,
                                      CudaStream stream) {
  runtime::check(op, data.dtype, "reduce_scatter");
  return impl_->collectives().reduce_scatter(data, out, op, stream);
}

Contributors Context::barrier() {
  coordinator::BarrierOperation operation;
  return runtime::take(impl_->run(operation));
}

RunOutcome Context::run(State& state, const std::function<void()>& body) {
  return impl_->run(state, body);
}

/// An exception may also leave `run` in a forked child, where nothing of this object may be
/// changed.
RunOutcome Context::Impl::run(State& state, const std::function<void()>& body) {
  refuse_in_callback("elastic::run");
  if (running_.exchange(true)) {
    throw Error(ErrorCode::kInvalidArgument,
                "elastic::run was called while another one is under way; a job has one training: "
                "return from the body of the first one before");
  }
  const std::unique_ptr<std::atomic<bool>, void (*)(std::atomic<bool>*)> running(
      &running_, [](std::atomic<bool>* flag) { *flag = false; });
  const std::uint64_t process = detail::process_mark();
  try {
    const RunOutcome outcome = train(state, body);
    set_unfinished({});
    return outcome;
  } catch (...) {
    if (process == detail::process_mark())
      set_unfinished("an exception left elastic::run: " + text_of(std::current_exception()));
    throw;
  }
}

RunOutcome Context::Impl::train(State& state, const std::function<void()>& body) {
  const std::function<void()> before_commit = [this] {
    coordinator().flush();
    coordinator().drain();
  };
  const std::uint64_t process = detail::process_mark();
  int in_vain = 0;
  for (std::uint64_t commits = 0; in_vain < kRejoinsInVain; commits = state.commits()) {
    try {
      const RunOutcome outcome =
          runtime::run_training(state, body, control(), step_clock(), before_commit, state_layout_);
      detail::require_process(process);  // the body may have forked, and the child returned
      runtime::log_steps(step_clock().times());
      return outcome;
    } catch (const Error& error) {
      const bool is_out = error.code() == ErrorCode::kEvicted ||
                          (error.code() == ErrorCode::kTimeout && control().left_after_timeout());
      if (!is_out || !options().rejoin) throw;
      in_vain = state.commits() > commits ? 0 : in_vain + 1;
      log::warn("joins again: {}", error.what());
      try {
        rejoin();
      } catch (const runtime::Departure& departure) {
        log::warn("does not join again: {}", departure.what());
        return departure.outcome;
      }
    }
  }
  throw Error(ErrorCode::kEvicted, "evicted " + std::to_string(kRejoinsInVain) +
                                       " times without having finished a step in between");
}

}  // namespace elastic
