#pragma once

#include <cstddef>

#include "collectives/kernels/copy.hpp"

namespace elastic::transport {

/// From here on what is written goes past the caches: the peer takes it out of memory sooner than
/// out of another core's cache, several times so where the two share none.
inline constexpr std::size_t kPastCachesBytes = 16 * 1024;

/// Copies to shared memory that a worker on another core is about to read.
inline void copy_to_peer(std::byte* into, const std::byte* from, std::size_t bytes) {
  kernels::copy(into, from, bytes,
                bytes >= kPastCachesBytes ? kernels::Store::kStreaming : kernels::Store::kCached);
}

}  // namespace elastic::transport
