#pragma once

#include <cstddef>

#include "collectives/kernels/store.hpp"

namespace elastic::kernels {

/// Copies between ranges that do not overlap and need not be aligned.
void copy(std::byte* into, const std::byte* from, std::size_t bytes, Store store);

}  // namespace elastic::kernels
