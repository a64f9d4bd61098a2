#include "elastic/context.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "collectives/kernels/reduce.hpp"
#include "config/environment.hpp"
#include "config/options.hpp"
#include "coordinator/coordinator.hpp"
#include "coordinator/operation.hpp"
#include "runtime/backends.hpp"
#include "runtime/control.hpp"
#include "runtime/join_job.hpp"
#include "runtime/raise.hpp"
#include "runtime/training_run.hpp"

namespace elastic {

using coordinator::Operation;

namespace {

/// A worker that is evicted again and again, each time before it has finished a step, gives up.
constexpr int kRejoinsInVain = 5;

coordinator::Coordinator::Options named_options(const Options& options) {
  coordinator::Coordinator::Options named;
  named.bucket_bytes = options.bucket_bytes;
  named.stall_warning = options.stall_warning;
  named.view_timeout = options.view_timeout;
  return named;
}

/// This worker under one incarnation. Order matters: the control thread outlives the coordinator's,
/// which ends when its lane is closed.
struct Incarnation {
  Incarnation(runtime::Identity identity, const Options& options, const runtime::Backends& backends)
      : control(std::move(identity), options, backends) {
    runtime::raise_if(control.start());
    coordinator.emplace(control.lane(runtime::kNamedLane), named_options(options));
  }

  runtime::Control control;
  std::optional<coordinator::Coordinator> coordinator;
};

}  // namespace

/// Puts a worker together.
class Context::Impl {
 public:
  explicit Impl(Options options)
      : options_(runtime::take(resolve(std::move(options), read_environment()))) {
    log::set_level(options_.log_level);
    backends_ = runtime::take(runtime::Backends::load(options_));
    runtime::Identity identity = runtime::take(runtime::find_job(options_, read_environment()));
    runtime::raise_if(backends_.start(runtime::kLanes, identity.under_mpirun));
    become(std::move(identity));
  }

  ~Impl() {
    control().leave(false);
    control().close();
  }

  /// Says goodbye; afterwards only destruction is left.
  void shutdown() {
    coordinator().flush();
    coordinator().drain();
    control().leave(true);
    control().close();
  }

  /// This worker was evicted: it comes back as a new one.
  void rejoin() {
    runtime::Identity identity = control().identity();
    runtime::draw_incarnation(identity);
    control().stop();
    become(std::move(identity));
  }

  const Options& options() const { return options_; }
  runtime::Control& control() const { return present_.load()->control; }
  coordinator::Coordinator& coordinator() const { return *present_.load()->coordinator; }

  std::shared_ptr<const runtime::ViewSummary> view() const { return control().view(); }

  std::shared_ptr<const coordinator::Members> members() const {
    const auto present = view();
    if (!present) {
      throw Error(ErrorCode::kNotInitialized,
                  "this worker is joining a running job: collectives are for members; enter "
                  "elastic::run first");
    }
    return present->members;
  }

  Contributors run(Operation& operation) {
    (void)members();
    coordinator().flush();
    return runtime::take(
        control().lane(runtime::kUnnamedLane).run(operation, options_.view_timeout));
  }

  Contributors allreduce(ConstTensorView in, TensorView out, ReduceOp op) {
    coordinator().flush();
    coordinator::Lane& lane = control().lane(runtime::kUnnamedLane);
    const coordinator::Lane::Turn turn = lane.take_turn();
    if (auto small = allreduce_small(lane, turn, in, out, op)) return *std::move(small);
    (void)members();
    coordinator::AllreduceOperation operation({in}, {out}, op);
    return runtime::take(lane.run(turn, operation, options_.view_timeout));
  }

  Work submit(std::string_view name, std::span<const TensorView> tensors, ReduceOp op) {
    (void)members();
    for (const TensorView& tensor : tensors) check(tensor);
    return Work(runtime::take(
        coordinator().submit(std::string(name), {tensors.begin(), tensors.end()}, op)));
  }

  static void check(const ConstTensorView& tensor) {
    if (tensor.device.kind != Device::Kind::kHost) {
      throw Error(ErrorCode::kInvalidArgument,
                  "device tensors need a GPU backend; none is built in");
    }
    if (tensor.data == nullptr && tensor.count > 0) {
      throw Error(ErrorCode::kInvalidArgument, "a tensor of " + std::to_string(tensor.count) +
                                                   " elements lies at a null pointer");
    }
  }

 private:
  /// Nothing, if it has to be done by `run`.
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
        std::make_unique<Incarnation>(std::move(identity), options_, backends_));
    present_.store(incarnations_.back().get());
  }

  Options options_;
  runtime::Backends backends_;
  /// The last is the present one. The others are closed, and kept for threads that still look at
  /// them.
  std::vector<std::unique_ptr<Incarnation>> incarnations_;
  std::atomic<Incarnation*> present_{nullptr};
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
  return view ? view->local_rank : -1;
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
ViewChange Context::last_view_change() const {
  return impl_->control().last_view_change();
}

Contributors Context::allreduce(ConstTensorView in, TensorView out, ReduceOp op) {
  Impl::check(in);
  Impl::check(out);
  if (in.count != out.count || in.dtype != out.dtype) {
    throw Error(ErrorCode::kInvalidArgument,
                "allreduce: input and output differ in count or dtype; they must be alike");
  }
  return impl_->allreduce(in, out, op);
}

Contributors Context::grouped_allreduce(std::span<const TensorView> tensors, ReduceOp op) {
  for (const TensorView& tensor : tensors) Impl::check(tensor);
  coordinator::AllreduceOperation operation({tensors.begin(), tensors.end()},
                                            {tensors.begin(), tensors.end()}, op);
  return impl_->run(operation);
}

Work Context::allreduce_async(std::string_view name, TensorView data, ReduceOp op) {
  return impl_->submit(name, {&data, 1}, op);
}

Work Context::grouped_allreduce_async(std::string_view name, std::span<const TensorView> tensors,
                                      ReduceOp op) {
  return impl_->submit(name, tensors, op);
}

Contributors Context::broadcast(TensorView data, int root) {
  Impl::check(data);
  const auto members = impl_->members();
  if (root < 0 || root >= members->size()) {
    throw Error(ErrorCode::kInvalidArgument, "broadcast: root " + std::to_string(root) +
                                                 " is no rank; there are " +
                                                 std::to_string(members->size()));
  }
  coordinator::BroadcastOperation operation(data, root, *members);
  return impl_->run(operation);
}

Contributors Context::allgather(ConstTensorView block, const TakeGathered& take) {
  Impl::check(block);
  coordinator::AllgatherOperation operation(block, take);
  return impl_->run(operation);
}

Contributors Context::reduce_scatter(ConstTensorView data, ReduceOp op, const TakeScattered& take) {
  Impl::check(data);
  coordinator::ReduceScatterOperation operation(data, op, take);
  return impl_->run(operation);
}

Contributors Context::barrier() {
  coordinator::BarrierOperation operation;
  return impl_->run(operation);
}

RunOutcome Context::run(State& state, const std::function<void()>& body) {
  const std::function<void()> before_commit = [this] {
    impl_->coordinator().flush();
    impl_->coordinator().drain();
  };
  int in_vain = 0;
  for (std::uint64_t commits = 0; in_vain < kRejoinsInVain; commits = state.commits()) {
    try {
      return runtime::run_training(state, body, impl_->control(), before_commit);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kEvicted || !impl_->options().rejoin) throw;
      in_vain = state.commits() > commits ? 0 : in_vain + 1;
      log::get().warn("joins again: {}", error.what());
      impl_->rejoin();
    }
  }
  throw Error(ErrorCode::kEvicted, "evicted " + std::to_string(kRejoinsInVain) +
                                       " times without having finished a step in between");
}

}  // namespace elastic
