#include "tests/unit/step_world.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "training/elements.hpp"

namespace elastic::testing {
namespace {

/// Combines tensors element by element into a copy of the first.
std::vector<std::byte> combine(const std::vector<TensorView>& tensors, ReduceOp op) {
  const auto* const first = static_cast<const std::byte*>(tensors.front().data);
  std::vector<std::byte> bytes(first, first + tensors.front().bytes());
  TensorView result = tensors.front();
  result.data = bytes.data();
  training::with_elements(result, [&]<typename T>(std::span<T> sums) {
    if constexpr (std::is_arithmetic_v<T>) {
      for (std::size_t from = 1; from < tensors.size(); ++from) {
        const auto* const values = static_cast<const T*>(tensors[from].data);
        for (std::size_t at = 0; at < sums.size(); ++at) {
          sums[at] = op == ReduceOp::kMax ? std::max(sums[at], values[at])
                                          : static_cast<T>(sums[at] + values[at]);
        }
      }
    }
  });
  return bytes;
}

}  // namespace

Contributors StepWorld::allreduce(WorkerId self, std::span<const TensorView> tensors, ReduceOp op) {
  std::unique_lock lock(mutex_);
  const std::size_t number = number_;
  arrived_[self] = tensors;
  if (arrived_.size() == alive_.size()) {
    complete(op);
    completed_.notify_all();
  }
  completed_.wait(lock, [&] { return number_ > number; });
  if (std::ranges::find(alive_, self) == alive_.end()) throw Death{};
  return contributors_;
}

void StepWorld::complete(ReduceOp op) {
  std::vector<WorkerId> counted;
  std::vector<WorkerId> survivors;
  for (const WorkerId worker : alive_) {
    if (!dies(worker, false)) counted.push_back(worker);
    if (!dies(worker, false) && !dies(worker, true)) survivors.push_back(worker);
  }
  contributors_ = Contributors(std::make_shared<const std::vector<WorkerId>>(counted), 1);
  std::rotate(counted.begin(),
              counted.begin() + static_cast<std::ptrdiff_t>(number_ % counted.size()),
              counted.end());
  for (std::size_t at = 0; at < arrived_.begin()->second.size(); ++at) {
    std::vector<TensorView> tensors;
    for (const WorkerId worker : counted) tensors.push_back(arrived_[worker][at]);
    const std::vector<std::byte> result = combine(tensors, op);
    for (const WorkerId worker : survivors) {
      if (!result.empty()) std::memcpy(arrived_[worker][at].data, result.data(), result.size());
    }
  }
  arrived_.clear();
  alive_ = survivors;
  ++number_;
}

bool StepWorld::dies(WorkerId worker, bool counted) const {
  return std::ranges::any_of(losses_, [&](const Loss& loss) {
    return loss.collective == number_ && loss.worker == worker && loss.counted == counted;
  });
}

}  // namespace elastic::testing
