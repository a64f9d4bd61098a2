#pragma once

#include <cstddef>

#include "collectives/kernels/store.hpp"

namespace elastic::kernels {

/// Copies between ranges that do not overlap and need not be aligned.
void copy(std::byte* into, const std::byte* from, std::size_t bytes, Store store);

/// Copies `from` twice and reads it once: `cached` stays in the cache, `streamed` goes past it. The
/// ranges do not overlap and need not be aligned.
void copy_to_both(std::byte* cached, std::byte* streamed, const std::byte* from, std::size_t bytes);

}  // namespace elastic::kernels
