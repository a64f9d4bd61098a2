#pragma once

#include <cstddef>

#include "elastic/types.hpp"

namespace elastic::kernels {

/// Fills `data` with the neutral element of `op`: combined with any x, it gives x. For sums and
/// averages 0, for products 1, for a minimum the greatest value (of floats infinity) and for a
/// maximum the least; for "and" all ones or 1, for the other bitwise and logical operations 0.
/// `data` need not be aligned.
void fill_neutral(DType dtype, ReduceOp op, std::byte* data, std::size_t elements);

}  // namespace elastic::kernels
