#pragma once

#include <cstddef>

namespace elastic::bench {

/// Bytes of the tensor divided by the time of the call, in GB/s (powers of ten).
constexpr double algorithm_bandwidth(std::size_t bytes, double microseconds) {
  return microseconds > 0 ? static_cast<double>(bytes) / microseconds / 1e3 : 0;
}

}  // namespace elastic::bench
