#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "elastic/half.hpp"

/// Inlined into loops for several instruction sets: a function of its own would be compiled for
/// one.
#define ELASTIC_KERNEL_INLINE [[gnu::always_inline]] inline

namespace elastic::kernels {

/// An element at any address.
template <typename T>
struct [[gnu::packed, gnu::may_alias]] Loose {
  T value;
};

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

/// What elements of type T are computed in.
template <typename T>
using Wide = std::conditional_t<kIsHalf<T>, float, T>;

/// What is stored for T: the bits, for the 16-bit floats.
template <typename T>
using Stored = std::conditional_t<kIsHalf<T>, std::uint16_t, T>;

template <typename T>
ELASTIC_KERNEL_INLINE Wide<T> widen(Stored<T> stored) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(stored) << 16);
  } else if constexpr (std::is_same_v<T, float16>) {
    return static_cast<float>(std::bit_cast<float16>(stored));
  } else {
    return stored;
  }
}

/// Rounds to nearest, ties to even; any NaN becomes the positive quiet one without payload.
template <typename T>
ELASTIC_KERNEL_INLINE Stored<T> narrow(Wide<T> wide) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    const auto word = std::bit_cast<std::uint32_t>(wide);
    const std::uint32_t rounded = (word + 0x7fffU + ((word >> 16) & 1U)) >> 16;
    return static_cast<std::uint16_t>((word & 0x7fffffffU) > 0x7f800000U ? 0x7fc0U : rounded);
  } else if constexpr (std::is_same_v<T, float16>) {
    return wide == wide ? float16(wide).bits : std::uint16_t{0x7e00};
  } else if constexpr (std::is_floating_point_v<T>) {
    return wide == wide ? wide : std::numeric_limits<T>::quiet_NaN();
  } else {
    return wide;
  }
}

}  // namespace elastic::kernels
