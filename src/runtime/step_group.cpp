#include "elastic/step_group.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "collectives/backend/buffer.hpp"
#include "collectives/device/placement.hpp"
#include "elastic/error.hpp"
#include "elastic/work.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/open_steps.hpp"
#include "runtime/raise.hpp"
#include "runtime/step_contributors.hpp"
#include "runtime/tensor_check.hpp"

namespace elastic {

void runtime::OpenSteps::refuse_commit() const {
  const MutexLock lock(mutex_);
  if (first_.empty()) return;
  throw Error(ErrorCode::kInvalidArgument,
              "State::commit: a StepGroup is open, with tensor '" + first_.begin()->second +
                  "': call StepGroup::wait before the commit, which ends the step");
}

class StepGroup::Impl {
 public:
  Impl(Context& context, std::shared_ptr<runtime::OpenSteps> open_steps)
      : context_(context), open_steps_(std::move(open_steps)) {}
  ~Impl();

  void add(std::string_view name, ConstTensorView in, TensorView out, ReduceOp op);
  Contributors wait();
  std::size_t open() const { return tensors_.size(); }
  std::size_t kept_bytes() const;

 private:
  struct Tensor {
    std::string name;
    ConstTensorView in;  ///< the caller's, or a copy of it
    TensorView out;
    ReduceOp op;
    bool is_copied;
    Work work;
  };
  /// The failure of one tensor.
  struct Failure {
    std::string name;
    std::exception_ptr error;
  };

  ConstTensorView keep(const std::string& name, ConstTensorView in);
  void start(Tensor& tensor);
  std::optional<Failure> finish(std::vector<Contributors>& contributors);
  static void restore(const Tensor& tensor);
  void end();
  [[noreturn]] void fail(const Failure& failure, bool has_results);

  Context& context_;
  const std::shared_ptr<runtime::OpenSteps> open_steps_;
  std::vector<Tensor> tensors_;
  std::map<std::string, collectives::Buffer, std::less<>> copies_;  // from step to step
};

StepGroup::Impl::~Impl() {
  if (tensors_.empty()) return;
  log::warn("a StepGroup ends without a wait for its tensors, such as '{}'", tensors_.front().name);
  open_steps_->ended(this);
}

void StepGroup::Impl::add(std::string_view name, ConstTensorView in, TensorView out, ReduceOp op) {
  const std::string text(name);
  const auto same = [&](const Tensor& tensor) { return tensor.name == text; };
  if (std::ranges::any_of(tensors_, same)) {
    throw Error(ErrorCode::kInvalidArgument,
                "StepGroup: tensor '" + text +
                    "' is in this step already: give each tensor a name of its own, and call wait "
                    "at the end of the step");
  }
  if (device::on_device(in) || device::on_device(out)) {
    throw Error(ErrorCode::kInvalidArgument,
                "StepGroup: tensor '" + text +
                    "' is on a device, and a StepGroup takes tensors in host memory: use "
                    "allreduce_async, or grouped_allreduce, which is one unit, too");
  }
  const bool in_place = in.data == out.data;
  // In place the input is copied first.
  runtime::check_reduction(in, out, op, "StepGroup::allreduce");
  Tensor tensor{text, in, out, op, in_place, {}};
  if (in_place) tensor.in = keep(text, in);
  start(tensor);
  tensors_.push_back(std::move(tensor));
  open_steps_->begun(this, text);
}

ConstTensorView StepGroup::Impl::keep(const std::string& name, ConstTensorView in) {
  collectives::Buffer& copy = copies_[name];
  copy.resize(in.bytes());
  if (in.bytes() > 0) std::memcpy(copy.data(), in.data, in.bytes());
  return {copy.data(), in.count, in.dtype, in.device};
}

/// In place the tensor has its input. Otherwise the output is written from the input that was kept.
void StepGroup::Impl::start(Tensor& tensor) {
  tensor.work = tensor.is_copied
                    ? context_.allreduce_async(tensor.name, tensor.out, tensor.op)
                    : context_.allreduce_async(tensor.name, tensor.in, tensor.out, tensor.op);
}

void StepGroup::Impl::restore(const Tensor& tensor) {
  if (tensor.is_copied && tensor.in.bytes() > 0) {
    std::memcpy(tensor.out.data, tensor.in.data, tensor.in.bytes());
  }
}

/// Waits for all tensors, and returns the first failure in their order.
std::optional<StepGroup::Impl::Failure> StepGroup::Impl::finish(
    std::vector<Contributors>& contributors) {
  std::optional<Failure> first;
  contributors.clear();
  for (const Tensor& tensor : tensors_) {
    try {
      contributors.push_back(tensor.work.wait());
    } catch (const Error&) {
      if (!first) first = Failure{tensor.name, std::current_exception()};
    }
  }
  return first;
}

Contributors StepGroup::Impl::wait() {
  std::vector<Contributors> contributors;
  std::optional<Failure> failure;
  const auto finish_all = [&](std::vector<Contributors>& all) {
    failure = finish(all);
    return !failure;
  };
  const auto again = [&](std::size_t index) {
    restore(tensors_[index]);
    start(tensors_[index]);
  };
  if (!runtime::sum_over_the_same(contributors, finish_all, again)) {
    fail(*failure, !contributors.empty());
  }
  end();
  return contributors.empty() ? Contributors() : runtime::latest(contributors);
}

void StepGroup::Impl::end() {
  tensors_.clear();
  open_steps_->ended(this);
}

/// The failed tensor is as it was; the others have results, which go. After a timeout a program may
/// begin the step again, which members that are done with some tensors would take for the next
/// step: then this worker leaves.
void StepGroup::Impl::fail(const Failure& failure, bool has_results) {
  for (const Tensor& tensor : tensors_) restore(tensor);
  end();
  try {
    std::rethrow_exception(failure.error);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kTimeout && has_results) {
      runtime::raise(context_.impl_->leave_without_result(
          Status(Code::kTimeout, "the step has results for some of its tensors, and none for '" +
                                     failure.name + "': " + runtime::text_of(error))));
    }
    if (error.code() != ErrorCode::kMismatch) throw;
    throw Error(error.code(),
                "the step ends without results, because of tensor '" + failure.name +
                    "': " + runtime::text_of(error),
                error.peer(), error.generation());
  }
}

std::size_t StepGroup::Impl::kept_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [name, copy] : copies_) bytes += copy.size();
  return bytes;
}

StepGroup::StepGroup(Context& context)
    : impl_(std::make_unique<Impl>(context, context.impl_->open_steps())) {}
StepGroup::~StepGroup() = default;

void StepGroup::allreduce(std::string_view name, ConstTensorView in, TensorView out, ReduceOp op) {
  impl_->add(name, in, out, op);
}
Contributors StepGroup::wait() {
  return impl_->wait();
}
std::size_t StepGroup::open() const {
  return impl_->open();
}
std::size_t StepGroup::kept_bytes() const {
  return impl_->kept_bytes();
}

}  // namespace elastic
