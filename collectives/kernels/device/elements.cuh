// The conversion of one element, on the device.
#pragma once

#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "collectives/kernels/device/device_scale.hpp"
#include "elastic/half.hpp"

namespace elastic::kernels::device {

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

// The device's conversions make every NaN one and the same; those here leave what the host leaves.

__device__ inline float widened(float16 value) {
  const float wide = __half2float(__ushort_as_half(value.bits));
  const std::uint32_t nan =
      ((value.bits & 0x8000U) << 16) | 0x7f800000U | ((value.bits & 0x3ffU) << 13);
  return wide != wide ? __uint_as_float(nan) : wide;
}

__device__ inline float widened(bfloat16 value) {
  return __uint_as_float(static_cast<std::uint32_t>(value.bits) << 16);
}

__device__ inline float widened(float value) {
  return value;
}
__device__ inline double widened(double value) {
  return value;
}

__device__ inline double as_double(float value) {
  const std::uint64_t word = __float_as_uint(value);
  const std::uint64_t nan =
      ((word & 0x80000000U) << 32) | 0x7ff8000000000000U | ((word & 0x7fffffU) << 29);
  return value != value ? __longlong_as_double(static_cast<long long>(nan)) : value;
}

template <typename Wide, typename Value>
__device__ Wide as_wide(Value value) {
  if constexpr (std::is_same_v<Wide, Value>) {
    return value;
  } else {
    return as_double(value);
  }
}

__device__ inline float as_float(float value) {
  return value;
}

__device__ inline float as_float(double value) {
  const auto word = static_cast<std::uint64_t>(__double_as_longlong(value));
  const auto nan = static_cast<std::uint32_t>(((word >> 32) & 0x80000000U) | 0x7fc00000U |
                                              ((word >> 29) & 0x7fffffU));
  return value != value ? __uint_as_float(nan) : __double2float_rn(value);
}

template <typename Half>
__device__ Half half_of(float value) {
  const std::uint32_t word = __float_as_uint(value);
  std::uint32_t bits;
  if constexpr (std::is_same_v<Half, float16>) {
    const std::uint32_t nan = ((word >> 16) & 0x8000U) | 0x7e00U;
    bits = value != value ? nan : __half_as_ushort(__float2half_rn(value));
  } else {
    const std::uint32_t nan = (word >> 16) | 0x40U;
    bits = value != value ? nan : __bfloat16_as_ushort(__float2bfloat16_rn(value));
  }
  Half half;
  half.bits = static_cast<std::uint16_t>(bits);
  return half;
}

/// By way of binary32 for halves, whatever they come from: as the host converts.
template <typename To, typename Wide>
__device__ To rounded_to(Wide value) {
  if constexpr (kIsHalf<To>) {
    return half_of<To>(as_float(value));
  } else {
    return value;
  }
}

__device__ inline float product(float a, float b) {
  return __fmul_rn(a, b);
}
__device__ inline double product(double a, double b) {
  return __dmul_rn(a, b);
}

/// Divides by one divisor of at least 1, with the bits of a division.
template <typename Wide>
class Divisor {
 public:
  __device__ explicit Divisor(Wide divisor) : divisor_(divisor) {}
  __device__ Wide divide(Wide value) const { return __ddiv_rn(value, divisor_); }

 private:
  const Wide divisor_;
};

/// A division takes three times as many instructions as there is time for while the memory moves
/// the next elements. With the reciprocal at hand two corrections give its bits (Markstein,
/// "Computation of elementary functions on the IBM RISC System/6000 processor", 1990: an estimate
/// next to the quotient, the exact remainder of it, and the rounded reciprocal give the rounded
/// quotient). The remainder is exact where nothing underflows.
template <>
class Divisor<float> {
 public:
  __device__ explicit Divisor(float divisor) : divisor_(divisor), reciprocal_(1 / divisor) {}

  __device__ float divide(float value) const {
    const float estimate = __fmul_rn(value, reciprocal_);
    const float magnitude = fabsf(value);
    const float quotient = corrected(value, corrected(value, estimate));
    if (magnitude < kSmall && magnitude > 0) return __fdiv_rn(value, divisor_);
    const bool is_exact = magnitude == 0 || !(magnitude < __int_as_float(0x7f800000));
    return is_exact ? estimate : quotient;
  }

 private:
  /// With divisors up to 2^32 the remainder is a normal number from here on.
  static constexpr float kSmall = 0x1p-60F;

  __device__ float corrected(float value, float quotient) const {
    const float remainder = __fmaf_rn(-divisor_, quotient, value);
    return __fmaf_rn(remainder, reciprocal_, quotient);
  }

  const float divisor_;
  const float reciprocal_;
};

__device__ inline float one_nan(float v) {
  return v != v ? __uint_as_float(0x7fc00000U) : v;
}
__device__ inline double one_nan(double v) {
  return v != v ? __longlong_as_double(0x7ff8000000000000LL) : v;
}

/// Floats from one type to another, scaled on the way in the wider of what each is computed in.
template <typename From, typename To>
class Conversion {
  using Wide =
      std::conditional_t<std::is_same_v<From, double> || std::is_same_v<To, double>, double, float>;

 public:
  __device__ explicit Conversion(const DeviceScale& scale)
      : factor_(static_cast<Wide>(scale.factor)),
        divisor_(static_cast<Wide>(scale.divisor)),
        multiplies_(scale.multiplies),
        divides_(scale.divides) {}

  __device__ To operator()(From from) const {
    Wide value = as_wide<Wide>(widened(from));
    if (multiplies_) value = product(value, factor_);
    if (divides_) value = divisor_.divide(value);
    if (multiplies_ || divides_) value = one_nan(value);
    return rounded_to<To>(value);
  }

 private:
  const Wide factor_;
  const Divisor<Wide> divisor_;
  const bool multiplies_;
  const bool divides_;
};

/// Integers divided, truncating towards zero.
template <typename T>
class Division {
  using Unsigned = std::make_unsigned_t<T>;

 public:
  __device__ explicit Division(const DeviceScale& scale)
      : divisor_(static_cast<std::uint32_t>(scale.divisor)),
        reciprocal_(scale.reciprocal),
        small_reciprocal_(scale.small_reciprocal),
        shift_(scale.shift) {}

  __device__ T operator()(T value) const {
    if constexpr (std::is_signed_v<T>) {
      if (value < 0) return static_cast<T>(0 - quotient_of(0 - static_cast<Unsigned>(value)));
    }
    return static_cast<T>(quotient_of(static_cast<Unsigned>(value)));
  }

 private:
  __device__ Unsigned quotient_of(Unsigned magnitude) const {
    if constexpr (sizeof(T) == 1) {
      return static_cast<Unsigned>(magnitude * small_reciprocal_ >> 16);
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {  // magnitudes beyond 2^63
      return magnitude / divisor_;
    } else {
      return static_cast<Unsigned>(__umul64hi(magnitude, reciprocal_) >> shift_);
    }
  }

  const std::uint32_t divisor_;
  const std::uint64_t reciprocal_;
  const std::uint32_t small_reciprocal_;
  const std::uint32_t shift_;
};

}  // namespace elastic::kernels::device
