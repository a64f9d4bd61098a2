#include "elastic/context.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "config/environment.hpp"
#include "config/options.hpp"
#include "coordinator/coordinator.hpp"
#include "coordinator/operation.hpp"
#include "runtime/control.hpp"
#include "runtime/join_job.hpp"
#include "runtime/raise.hpp"
#include "runtime/training_run.hpp"

namespace elastic {

using coordinator::Operation;

/// Puts a worker together. Order matters: the control thread outlives the coordinator's, which ends
/// when its lane is closed.
class Context::Impl {
 public:
  explicit Impl(Options options)
      : options_(runtime::take(resolve(std::move(options), read_environment()))) {
    log::set_level(options_.log_level);
    control_ = std::make_unique<runtime::Control>(
        runtime::take(runtime::find_job(options_, read_environment())), options_);
    runtime::raise_if(control_->start());
    coordinator::Coordinator::Options named;
    named.bucket_bytes = options_.bucket_bytes;
    named.stall_warning = options_.stall_warning;
    named.view_timeout = options_.view_timeout;
    coordinator_ =
        std::make_unique<coordinator::Coordinator>(control_->lane(runtime::kNamedLane), named);
  }

  ~Impl() {
    control_->leave(false);
    control_->close();
  }

  /// Says goodbye; afterwards only destruction is left.
  void shutdown() {
    coordinator_->flush();
    coordinator_->drain();
    control_->leave(true);
    control_->close();
  }

  runtime::Control& control() { return *control_; }
  coordinator::Coordinator& coordinator() { return *coordinator_; }

  std::shared_ptr<const runtime::ViewSummary> view() const { return control_->view(); }

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
    coordinator_->flush();
    return runtime::take(
        control_->lane(runtime::kUnnamedLane).run(operation, options_.view_timeout));
  }

  Work submit(std::string_view name, std::span<const TensorView> tensors, ReduceOp op) {
    (void)members();
    for (const TensorView& tensor : tensors) check(tensor);
    return Work(runtime::take(
        coordinator_->submit(std::string(name), {tensors.begin(), tensors.end()}, op)));
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
  Options options_;
  std::unique_ptr<runtime::Control> control_;
  std::unique_ptr<coordinator::Coordinator> coordinator_;
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
  coordinator::AllreduceOperation operation({in}, {out}, op);
  return impl_->run(operation);
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
  return runtime::run_training(state, body, impl_->control(), before_commit);
}

}  // namespace elastic
