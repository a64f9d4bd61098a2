#pragma once

#include <cstddef>
#include <cstdint>

#include "elastic/types.hpp"

namespace elastic::kernels {

// The bits are those that the kernels of devices leave (collectives/kernels/device). Nothing need
// be aligned, and nothing may overlap.

/// Elements of `from`, kF32 or kF64, times `factor`, rounded to `half`: kF16 or kBF16; those of
/// kF64 by way of binary32.
void cast(DType from, const std::byte* elements, std::size_t count, double factor, DType half,
          std::byte* halves);

/// Halves as elements of `to`: times `factor`, and then divided by `divisor`, which is not 0; each
/// rounded once, in the type `to`.
void widen(DType half, const std::byte* halves, std::size_t count, double factor,
           std::uint32_t divisor, DType to, std::byte* elements);

}  // namespace elastic::kernels
