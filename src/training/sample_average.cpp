#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "elastic/error.hpp"
#include "elastic/global_batch.hpp"
#include "training/tensor_sums.hpp"

namespace elastic {

SampleAverage average_by_samples(const detail::GroupedAllreduce& allreduce,
                                 std::span<const TensorView> sums, std::uint64_t samples) {
  training::check_tensors("average_by_samples", sums, true);
  // So many that no number of workers makes the total overflow.
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (samples > kMost) {
    throw Error(ErrorCode::kInvalidArgument, "average_by_samples: " + std::to_string(samples) +
                                                 " samples; give 0 to " + std::to_string(kMost));
  }
  auto total = static_cast<std::int64_t>(samples);
  std::vector<TensorView> tensors(sums.begin(), sums.end());
  tensors.push_back(view(std::span(&total, 1)));
  Contributors contributors = allreduce(tensors, ReduceOp::kSum);
  if (total > 0) training::divide(sums, static_cast<double>(total));
  return {std::move(contributors), static_cast<std::uint64_t>(total)};
}

}  // namespace elastic
