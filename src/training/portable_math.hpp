#pragma once

namespace elastic::training {

// The C library chooses its cos and pow by the processor, with fused operations or without, and
// they differ in the last bit. Ranks on different machines must agree on every bit of a rate, so
// these are made of operations that IEEE 754 rounds alike everywhere.

/// (1 + cos(pi * part)) / 2 for `part` from 0 to 1; exact at both ends.
double half_cosine(double part);

/// `base` to the power of `exponent`, for `base` from 0 to 1 and a positive `exponent`; exact at
/// both ends of `base`.
double power(double base, double exponent);

}  // namespace elastic::training
