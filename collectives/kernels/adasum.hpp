#pragma once

#include <cstddef>

#include "elastic/types.hpp"

/// The arithmetic of Adasum, for float16, bfloat16, float and double. All of it is in double, in an
/// order that depends on the number of elements alone: the bits depend neither on the processor nor
/// on the compiler. `a` and `b` have `elements` elements of `dtype` each, and need not be aligned.
namespace elastic::kernels {

/// Three numbers from which Adasum combines two vectors a and b.
struct DotProducts {
  double ab = 0;
  double aa = 0;
  double bb = 0;
};

DotProducts dot_products(DType dtype, const std::byte* a, const std::byte* b, std::size_t elements);

/// The weight of a vector in the sum of two: 1 - ab / (2 aa), with the dot product `ab` of both and
/// that of the vector with itself. 1 for a vector of length 0, whose direction is none.
double adasum_weight(double ab, double aa);

/// `into` = weight_a * a + weight_b * b. `into` may be exactly `a` or exactly `b`. 16-bit floats
/// are rounded by way of float.
void weighted_sum(DType dtype, std::byte* into, const std::byte* a, double weight_a,
                  const std::byte* b, double weight_b, std::size_t elements);

}  // namespace elastic::kernels
