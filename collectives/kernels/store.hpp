#pragma once

#include <cstddef>
#include <cstdint>

namespace elastic::kernels {

/// How results get to memory.
enum class Store : std::uint8_t {
  kTemporal,
  /// Non-temporal stores, which save reading the overwritten lines: for more data than the caches
  /// hold, or for data that this core does not read soon. When the function returns, stores that
  /// follow it are seen after its.
  kNonTemporal
};

/// From here on a tensor does not fit into the caches beside those it is combined with.
inline constexpr std::size_t kBeyondCacheBytes = std::size_t{4} << 20;

}  // namespace elastic::kernels
