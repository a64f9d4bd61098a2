#pragma once

#include <cstdint>

#include "collectives/kernels/device/pack_plan.hpp"

namespace elastic::kernels::device {

/// A scale, as the device computes it.
struct DeviceScale {
  double factor = 1;
  double divisor = 1;  ///< of floats, and of unsigned integers of 64 bits
  /// Of integers: the quotient of a magnitude m up to 2^63 is m * reciprocal >> (64 + shift).
  std::uint64_t reciprocal = 0;
  /// For integers of 8 bits: the quotient of a magnitude m is m * small_reciprocal >> 16.
  std::uint32_t small_reciprocal = 0;
  std::uint32_t shift = 0;
  bool multiplies = false;
  bool divides = false;
};

/// The divisor is not 0. Floats are multiplied instead of divided where that gives the same bits.
DeviceScale device_scale(const Scale& scale);

}  // namespace elastic::kernels::device
