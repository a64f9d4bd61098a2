#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "elastic/types.hpp"

namespace elastic::training {

/// Real numbers as whole multiples of a power of two, the same for all that are to be added. Sums
/// of those are exact, so they do not depend on the order.

/// The greatest magnitude in a tensor of real numbers; infinity where one is infinite or is no
/// number.
double magnitude(const ConstTensorView& tensor);

/// The exponent k for which numbers of at most `magnitude` (finite), times 2^k and rounded, are at
/// most 2^50, or less where there are so many `summands` (at least 1) that their sum would be more
/// than 2^62.
int fixed_exponent(double magnitude, std::size_t summands);

/// Adds each element, times 2^exponent and rounded, to its sum.
void add_fixed(const ConstTensorView& tensor, int exponent, std::span<std::int64_t> sums);

/// The reverse: the elements nearest to the sums times 2^-exponent.
void from_fixed(std::span<const std::int64_t> sums, int exponent, const TensorView& tensor);

/// Makes every element of a tensor of real numbers NaN.
void set_to_nan(const TensorView& tensor);

}  // namespace elastic::training
