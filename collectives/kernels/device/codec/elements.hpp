// One element of a gradient, encoded and decoded with the bits of the host's codecs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/kernels/device/codec/floats.hpp"
#include "elastic/half.hpp"

namespace elastic::kernels::codec {

/// A value rounded to a half, and the rest of it: 0 where the half is no finite number.
template <typename Half>
struct SentHalf {
  Half half;
  float residual;
};

template <typename Half>
ELASTIC_HOST_DEVICE SentHalf<Half> sent_half(float value, float scale) {
  const Half half(product(value, scale));
  const float sent = quotient(static_cast<float>(half), scale);
  return {half, is_finite(sent) ? value - sent : 0.0F};
}

/// An element of a tensor of T from the sum of halves.
template <typename T, typename Half>
ELASTIC_HOST_DEVICE T element_of(Half half, float scale, float divisor) {
  const T value = widened<T>(quotient(static_cast<float>(half), scale));
  return divisor == 1 ? value : quotient(value, static_cast<T>(divisor));
}

/// The scale of a block of int8 whose greatest magnitude has these bits. NaN if that is Inf or NaN.
ELASTIC_HOST_DEVICE inline float int8_scale(std::uint32_t most) {
  constexpr float kMost = 127;
  if (most >= kInfinity) return std::bit_cast<float>(kNan);
  const float scale = std::bit_cast<float>(most) / kMost;
  // Rounded up, it would have the greatest of all floats come back as Inf: the float before it.
  return is_finite(kMost * scale) ? scale
                                  : std::bit_cast<float>(std::bit_cast<std::uint32_t>(scale) - 1);
}

/// A value as a multiple of its block's scale, and the rest of it.
struct SentStep {
  std::int8_t step;
  float residual;
};

ELASTIC_HOST_DEVICE inline SentStep sent_step(float value, float scale) {
  constexpr float kMost = 127;
  constexpr float kShift = 0x1.8p23F;  // to the nearest whole number, ties to even
  if (!(scale > 0)) return {0, is_finite(value) ? value : 0.0F};
  const float ratio = value / scale;
  // The scale of tiny numbers is rounded coarsely, so that more than 127 of it can be needed.
  const float within = ratio < -kMost ? -kMost : ratio > kMost ? kMost : ratio;
  const float steps = (within + kShift) - kShift;
  return {static_cast<std::int8_t>(steps), value - steps * scale};
}

ELASTIC_HOST_DEVICE inline float value_of(std::int8_t step, float scale) {
  return product(static_cast<float>(step), scale);
}

/// Words at any address, in the byte order of devices and of the hosts that have them.
ELASTIC_HOST_DEVICE inline void store_word(std::uint8_t* to, std::uint32_t word) {
  for (unsigned at = 0; at < 4; ++at) to[at] = static_cast<std::uint8_t>(word >> (8 * at));
}
ELASTIC_HOST_DEVICE inline std::uint32_t load_word(const std::uint8_t* from) {
  std::uint32_t word = 0;
  for (unsigned at = 0; at < 4; ++at) word |= std::uint32_t{from[at]} << (8 * at);
  return word;
}
ELASTIC_HOST_DEVICE inline void store_float(std::uint8_t* to, float value) {
  store_word(to, std::bit_cast<std::uint32_t>(value));
}
ELASTIC_HOST_DEVICE inline float load_float(const std::uint8_t* from) {
  return std::bit_cast<float>(load_word(from));
}

}  // namespace elastic::kernels::codec
