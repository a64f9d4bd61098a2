#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/kernels/store.hpp"
#include "elastic/types.hpp"

namespace elastic::kernels {

/// `into` = `left` op `right`, element by element. `into` may be exactly `left` or exactly `right`;
/// otherwise the ranges do not overlap. They need not be aligned.
using Function = void (*)(std::byte* into, const std::byte* left, const std::byte* right,
                          std::size_t elements);

/// The loop for `op`, for the best instructions that this processor has. kAverage sums; `divide`
/// does the rest. kAdasum and kHierarchicalAdasum are no loops over elements (see
/// adasum.hpp): callers do not ask for them.
///
/// Sums and products of integers wrap around. Bools are bytes, of which "and" (kProduct, kMin) is
/// the least and "or" (kSum, kMax) the greatest. The bitwise operations combine floats by their
/// bits, too; the callers refuse that. The logical ones take what is not 0 for true, NaN as well,
/// and give 0 or 1. float16 and bfloat16 are combined as binary32 and
/// rounded once. The left operand is the minimum or maximum of 0.0 and -0.0. A NaN among the
/// operands gives the one quiet NaN that is positive and without payload. So the bits depend
/// neither on the processor nor on the compiler.
Function reduce(DType dtype, ReduceOp op, Store store = Store::kTemporal);

/// Divides `elements` elements in place: 16-bit floats as binary32, integers truncating towards
/// zero. `divisor` is not 0. `data` need not be aligned. Bools are not divided: the callers refuse
/// kAverage of them.
void divide(DType dtype, std::byte* data, std::size_t elements, std::uint32_t divisor);

}  // namespace elastic::kernels
