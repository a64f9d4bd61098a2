#pragma once

#include <bit>
#include <cstdint>

namespace elastic {

/// IEEE 754 binary16 as stored: 1 sign, 5 exponent, 10 fraction bits. Storage only; convert to
/// float to compute.
struct float16 {
  std::uint16_t bits = 0;  ///< as stored

  /// Zero.
  constexpr float16() = default;
  /// Rounds to nearest, ties to even; overflow becomes infinity, NaN stays NaN.
  constexpr explicit float16(float value) : bits(round(value)) {}
  /// \returns the same value; every binary16 is a float.
  constexpr explicit operator float() const { return widen(bits); }

 private:
  static constexpr std::uint16_t round(float value) {
    const std::uint32_t word = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((word >> 16) & 0x8000U);
    const std::uint32_t magnitude = word & 0x7fffffffU;
    if (magnitude > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U);
    if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);
    if (magnitude < 0x38800000U) {
      // Subnormal: adding 0.5 lines the bits up so that the float adder does the rounding.
      const float aligned = std::bit_cast<float>(magnitude) + 0.5F;
      return static_cast<std::uint16_t>(sign |
                                        (std::bit_cast<std::uint32_t>(aligned) - 0x3f000000U));
    }
    const std::uint32_t odd = (magnitude >> 13) & 1U;
    return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000U + 0xfffU + odd) >> 13));
  }
  static constexpr float widen(std::uint16_t half) {
    const std::uint32_t sign = (half & 0x8000U) << 16;
    const std::uint32_t magnitude = half & 0x7fffU;
    if (magnitude >= 0x7c00U) {
      return std::bit_cast<float>(sign | 0x7f800000U | ((magnitude & 0x3ffU) << 13));
    }
    if (magnitude < 0x0400U) {
      const float value = static_cast<float>(magnitude) * 0x1p-24F;
      return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
    }
    return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000U));
  }
};

/// bfloat16 as stored: the upper half of a binary32. Storage only; convert to float to compute.
struct bfloat16 {
  std::uint16_t bits = 0;  ///< as stored

  /// Zero.
  constexpr bfloat16() = default;
  /// Rounds to nearest, ties to even; NaN stays NaN.
  constexpr explicit bfloat16(float value) : bits(round(value)) {}
  /// \returns the same value; every bfloat16 is a float.
  constexpr explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }

 private:
  static constexpr std::uint16_t round(float value) {
    const std::uint32_t word = std::bit_cast<std::uint32_t>(value);
    if ((word & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((word >> 16) | 0x40U);
    return static_cast<std::uint16_t>((word + 0x7fffU + ((word >> 16) & 1U)) >> 16);
  }
};

}  // namespace elastic
