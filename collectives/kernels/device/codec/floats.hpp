// Arithmetic of floats with the bits of the host, also for NaN, of which a device makes another
// one.
#pragma once

#include <bit>
#include <cstdint>

#include "collectives/kernels/device/codec/host_device.hpp"

namespace elastic::kernels::codec {

inline constexpr std::uint32_t kInfinity = 0x7f800000U;
inline constexpr std::uint32_t kNan = 0x7fc00000U;
/// The NaN of operations whose operands are none, such as Inf - Inf.
#ifdef __aarch64__
inline constexpr std::uint32_t kMadeNan = kNan;
#else
inline constexpr std::uint32_t kMadeNan = 0xffc00000U;
#endif

/// |value| as bits: ordered as magnitudes are, infinity above all numbers and NaN above infinity.
ELASTIC_HOST_DEVICE inline std::uint32_t magnitude_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
}

ELASTIC_HOST_DEVICE inline bool is_finite(float value) {
  return magnitude_bits(value) < kInfinity;
}

ELASTIC_HOST_DEVICE inline float without_signal(float nan) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(nan) | 0x00400000U);
}

/// `computed` from a and b, unless one of them is NaN: then the first of these, which does not
/// signal.
ELASTIC_HOST_DEVICE inline float with_nan_of(float a, float b, float computed) {
  if (a != a) return without_signal(a);
  if (b != b) return without_signal(b);
  return computed != computed ? std::bit_cast<float>(kMadeNan) : computed;
}

ELASTIC_HOST_DEVICE inline float sum(float a, float b) {
  return with_nan_of(a, b, a + b);
}

ELASTIC_HOST_DEVICE inline float product(float a, float b) {
  return with_nan_of(a, b, a * b);
}

ELASTIC_HOST_DEVICE inline float quotient(float a, float b) {
  return with_nan_of(a, b, a / b);
}

/// b is no NaN.
ELASTIC_HOST_DEVICE inline double quotient(double a, double b) {
  constexpr std::uint64_t kNoSignal = std::uint64_t{1} << 51;
  if (a != a) return std::bit_cast<double>(std::bit_cast<std::uint64_t>(a) | kNoSignal);
  return a / b;
}

/// To a float, as the host rounds.
ELASTIC_HOST_DEVICE inline float as_float(float value) {
  return value;
}
ELASTIC_HOST_DEVICE inline float as_float(double value) {
  if (value == value) return static_cast<float>(value);
  const auto word = std::bit_cast<std::uint64_t>(value);
  return std::bit_cast<float>(
      static_cast<std::uint32_t>((word >> 32U & 0x80000000U) | kNan | (word >> 29U & 0x7fffffU)));
}

/// From a float to the type of a tensor, float or double.
template <typename T>
ELASTIC_HOST_DEVICE T widened(float value) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return value;
  } else {
    if (value == value) return static_cast<T>(value);
    const std::uint64_t word = std::bit_cast<std::uint32_t>(value);
    return std::bit_cast<T>((word & 0x80000000U) << 32U | 0x7ff8000000000000U |
                            (word & 0x7fffffU) << 29U);
  }
}

}  // namespace elastic::kernels::codec
