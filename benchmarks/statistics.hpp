#pragma once

#include <cstdint>
#include <vector>

namespace elastic::bench {

/// What is told of a set of samples, in their unit.
struct Summary {
  double min = 0;
  double median = 0;
  double p99 = 0;
  double max = 0;
};

/// The smallest sample that at least `fraction` (0 to 1) of all samples do not exceed: always one
/// that was measured. `sorted` ascends and is not empty.
double percentile(const std::vector<double>& sorted, double fraction);

/// The middle sample, or the mean of the two in the middle. `sorted` ascends and is not empty.
double median(const std::vector<double>& sorted);

/// All zero for no samples.
Summary summarize(std::vector<double> samples);

/// A duration in nanoseconds as the milliseconds that are reported.
constexpr double to_ms(std::int64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

}  // namespace elastic::bench
