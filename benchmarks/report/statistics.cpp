#include "benchmarks/report/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace elastic::bench {

double percentile(const std::vector<double>& sorted, double fraction) {
  const auto rank = std::ceil(fraction * static_cast<double>(sorted.size()));
  const auto place = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
  return sorted[std::min(place, sorted.size() - 1)];
}

double median(const std::vector<double>& sorted) {
  const std::size_t middle = sorted.size() / 2;
  if (sorted.size() % 2 == 1) return sorted[middle];
  return (sorted[middle - 1] + sorted[middle]) / 2;
}

Summary summarize(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  return {.min = samples.front(),
          .median = median(samples),
          .p99 = percentile(samples, 0.99),
          .max = samples.back()};
}

}  // namespace elastic::bench
