#pragma once

#include <cstddef>
#include <cstdint>

#include "elastic/types.hpp"

namespace elastic::kernels {

/// Combines `elements` elements at `from` with those at `into`. The ranges do not overlap and need
/// not be aligned.
using Function = void (*)(std::byte* into, const std::byte* from, std::size_t elements);

/// Instruction sets that the loops exist for. The results have the same bits on all of them.
enum class Isa : std::uint8_t { kBaseline, kAvx2 };

/// The best that this processor has.
Isa best_isa();

/// `into` = `into` op `from`. kAverage sums; `divide` does the rest.
///
/// Sums and products of integers wrap around. float16 and bfloat16 are combined as binary32 and
/// rounded once. A NaN among the operands gives the one quiet NaN that is positive and without
/// payload, so that the bits depend neither on the processor nor on the compiler.
Function reduce(DType dtype, ReduceOp op, Isa isa = best_isa());

/// `into` = `from` op `into`: differs from `reduce` for the minimum or maximum of 0.0 and -0.0.
Function reduce_flipped(DType dtype, ReduceOp op, Isa isa = best_isa());

/// Divides `elements` elements in place: 16-bit floats as binary32, integers truncating towards
/// zero. `divisor` is not 0. `data` need not be aligned.
void divide(DType dtype, std::byte* data, std::size_t elements, std::uint32_t divisor);

}  // namespace elastic::kernels
