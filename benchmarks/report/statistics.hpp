#pragma once

#include <cstdint>
#include <vector>

namespace elastic::bench {

/// The statistics of a set of samples, in the unit of the samples.
struct Summary {
  double min = 0;
  double median = 0;
  double p99 = 0;
  double max = 0;
};

/// The nearest-rank percentile: the smallest sample that at least `fraction` (0 to 1) of all
/// samples do not exceed. `sorted` ascends and is not empty.
double percentile(const std::vector<double>& sorted, double fraction);

/// The middle sample, or the mean of the two in the middle. `sorted` ascends and is not empty.
double median(const std::vector<double>& sorted);

/// All values are zero if there are no samples.
Summary summarize(std::vector<double> samples);

/// Converts nanoseconds to milliseconds.
constexpr double to_ms(std::int64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

}  // namespace elastic::bench
