#include "compression/backlog.hpp"

#include <array>
#include <cstddef>
#include <numeric>

namespace elastic::codecs {

double squared_norm(std::span<const float> values) {
  // Several sums: one would have each addition wait for the one before it.
  constexpr std::size_t kSums = 8;
  std::array<double, kSums> sums{};
  std::size_t at = 0;
  for (; at + kSums <= values.size(); at += kSums) {
    for (std::size_t sum = 0; sum < kSums; ++sum) {
      const double value{values[at + sum]};
      sums[sum] += value * value;
    }
  }
  for (; at < values.size(); ++at) sums[0] += double{values[at]} * double{values[at]};
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

bool Backlog::grows(double root_mean_square, double threshold) {
  if (root_mean_square <= threshold) {
    calls_ = 0;
    return false;
  }
  if (calls_ == 0) first_ = root_mean_square;
  ++calls_;
  return calls_ >= kCalls && root_mean_square > first_;
}

}  // namespace elastic::codecs
