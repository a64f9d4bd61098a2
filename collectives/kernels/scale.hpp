#pragma once

#include <cstddef>
#include <cstdint>

#include "elastic/types.hpp"

namespace elastic::kernels {

/// `into` = `from` / `divisor` * `factor`, in one pass. For float16, bfloat16, float and double:
/// 16-bit floats are computed as float and rounded once, the others in their own type. `into` may
/// be exactly `from`; they need not be aligned. A NaN becomes the one that `reduce` gives.
void scale(DType dtype, std::byte* into, const std::byte* from, std::size_t elements, double factor,
           std::uint32_t divisor = 1);

}  // namespace elastic::kernels
