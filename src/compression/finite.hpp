#pragma once

#include <bit>
#include <cstdint>

namespace elastic::codecs {

inline constexpr std::uint32_t kInfinity = 0x7f800000U;

/// |value| as bits: ordered as magnitudes are, infinity above all numbers and NaN above infinity.
inline std::uint32_t magnitude_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
}

inline bool is_finite(float value) {
  return magnitude_bits(value) < kInfinity;
}

}  // namespace elastic::codecs
