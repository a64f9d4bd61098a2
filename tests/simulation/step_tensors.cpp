#include "step_tensors.hpp"

#include <utility>

#include "runtime/step_contributors.hpp"

namespace elastic::simulation {

Status StepTensors::add(std::unique_ptr<NamedCall> call) {
  Tensor tensor{std::move(call), {}, {}};
  tensor.input = tensor.call->data();
  tensor.started = tensor.call->submit(coordinator_);
  if (!tensor.started.ok()) return tensor.started;
  tensors_.push_back(std::move(tensor));
  return {};
}

/// Models StepGroup::Impl::finish.
bool StepTensors::finish(std::vector<Contributors>& contributors) {
  failure_ = {};
  contributors.clear();
  for (const Tensor& tensor : tensors_) {
    const Result<Contributors> result =
        tensor.started.ok() ? tensor.call->wait() : Result<Contributors>(tensor.started);
    if (result.ok()) {
      contributors.push_back(result.value());
    } else if (failure_.ok()) {
      failure_ = result.status().within(tensor.call->name());
    }
  }
  return failure_.ok();
}

void StepTensors::start_again(Tensor& tensor) {
  sums_again_ = true;
  tensor.call->restore(tensor.input);
  tensor.started = tensor.call->submit(coordinator_);
}

/// Models StepGroup::Impl::wait.
Result<Contributors> StepTensors::wait() {
  std::vector<Contributors> contributors;
  const auto finish_all = [this](std::vector<Contributors>& all) { return finish(all); };
  const auto again = [this](std::size_t index) { start_again(tensors_[index]); };
  const bool agreed =
      mixes_ ? finish(contributors) : runtime::sum_over_the_same(contributors, finish_all, again);
  if (agreed) return runtime::latest(contributors);
  for (const Tensor& tensor : tensors_) tensor.call->restore(tensor.input);
  return failure_;
}

std::vector<const NamedCall*> StepTensors::calls() const {
  std::vector<const NamedCall*> calls;
  for (const Tensor& tensor : tensors_) calls.push_back(tensor.call.get());
  return calls;
}

void StepTensors::clear() {
  tensors_.clear();
  sums_again_ = false;
}

}  // namespace elastic::simulation
