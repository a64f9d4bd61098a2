#pragma once

#include <cstddef>
#include <cstdint>

namespace elastic::codecs {

/// The bytes that a rank sends in a ring allreduce of `bytes`: each part once to be reduced and
/// once to be distributed.
inline std::uint64_t ring_bytes(std::uint64_t bytes, std::size_t ranks) {
  return 2 * bytes * (ranks - 1) / ranks;
}

}  // namespace elastic::codecs
