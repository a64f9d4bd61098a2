#pragma once

#include <cstddef>

namespace elastic::bench {

/// Bytes of the tensor by the time of the call, in GB/s (powers of ten).
constexpr double algorithm_bandwidth(std::size_t bytes, double microseconds) {
  return microseconds > 0 ? static_cast<double>(bytes) / microseconds / 1e3 : 0;
}

/// What each worker's link carries at least in one direction, in GB/s: an allreduce has to move
/// 2(n-1)/n times the tensor, whatever the algorithm. Comparable between numbers of ranks.
constexpr double bus_bandwidth(double algorithm_bandwidth, int ranks) {
  return algorithm_bandwidth * 2 * (ranks - 1) / ranks;
}

}  // namespace elastic::bench
