#pragma once

#include <cstddef>
#include <cstdint>

namespace elastic {

/// More than any address space has. Counts that a caller or another process gives are compared with
/// it before anything is computed from them, so that no product and no sum wraps around.
inline constexpr std::size_t kMostAddressableBytes = std::size_t{1} << 56;

/// Whether `count` elements of `element` bytes can exist. `element` is not 0.
constexpr bool can_exist(std::uint64_t count, std::size_t element) {
  return count <= kMostAddressableBytes / element;
}

}  // namespace elastic
