// The work of one thread of a kernel for the element, or the block, of this number. The kernels
// (kernels.cu) are loops over these functions.
#pragma once

#include <cstdint>
#include <type_traits>

#include "collectives/kernels/device/codec/parameters.hpp"

namespace elastic::kernels::codec {

/// Calls `step` with a value of each of the types that the parameters say.
template <class Parameters, class Step>
ELASTIC_HOST_DEVICE void with_types(const Parameters& p, const Step& step) {
  if (p.is_double && p.is_bfloat16) {
    step(double{}, bfloat16{});
  } else if (p.is_double) {
    step(double{}, float16{});
  } else if (p.is_bfloat16) {
    step(float{}, bfloat16{});
  } else {
    step(float{}, float16{});
  }
}

template <typename T, typename Half>
ELASTIC_HOST_DEVICE void encode_half(const EncodeHalf& p, std::uint64_t at) {
  const float gradient = as_float(static_cast<const T*>(p.gradient)[at]);
  const SentHalf<Half> sent = sent_half<Half>(sum(p.kept[at], gradient), p.scale);
  p.halves[at] = sent.half.bits;
  p.staged[at] = sent.residual;
}

template <typename T, typename Half>
ELASTIC_HOST_DEVICE void decode_half(const DecodeHalf& p, std::uint64_t at) {
  Half half;
  half.bits = p.halves[at];
  static_cast<T*>(p.tensor)[at] = element_of<T>(half, p.scale, p.divisor);
}

template <typename T>
ELASTIC_HOST_DEVICE void divide(const Divide& p, std::uint64_t at) {
  T& value = static_cast<T*>(p.tensor)[at];
  value = quotient(value, static_cast<T>(p.divisor));
}

ELASTIC_HOST_DEVICE inline void stage(const Stage& p, std::uint64_t at) {
  float added = p.gradient[at];
  if (p.kept_momentum != nullptr) {
    added = sum(product(p.momentum, p.kept_momentum[at]), added);
    p.staged_momentum[at] = added;
  }
  p.staged[at] = sum(p.kept[at], added);
}

ELASTIC_HOST_DEVICE inline void encode_whole(const EncodeWhole& p, std::uint64_t at) {
  store_float(p.bytes + 4 * at, p.values[at]);
  if (p.cleared != nullptr) p.cleared[at] = 0;
  if (p.momentum != nullptr) p.momentum[at] = 0;
}

ELASTIC_HOST_DEVICE inline void write_int8_scale(const EncodeInt8& p, std::uint64_t block,
                                                 float scale) {
  store_float(p.bytes + 4 * block, scale);
}

ELASTIC_HOST_DEVICE inline void encode_int8(const EncodeInt8& p, std::uint64_t at, float scale) {
  const SentStep sent = sent_step(p.values[at], scale);
  p.bytes[4 * blocks_of(p.count, p.block) + at] = static_cast<std::uint8_t>(sent.step);
  p.values[at] = sent.residual;
}

/// An element of a block of `count` elements.
ELASTIC_HOST_DEVICE inline float element_at(const DenseBlock& from, std::uint64_t count,
                                            std::uint64_t at) {
  if (from.block == 0) return load_float(from.bytes + 4 * at);
  const float scale = load_float(from.bytes + 4 * (at / from.block));
  const std::uint8_t step = from.bytes[4 * blocks_of(count, from.block) + at];
  return value_of(static_cast<std::int8_t>(step), scale);
}

ELASTIC_HOST_DEVICE inline void add_dense(const AddDense& p, std::uint64_t at) {
  float value = p.begins ? 0.0F : p.sums[at];
  for (std::uint32_t one = 0; one < p.used; ++one) {
    value = sum(value, element_at(p.blocks[one], p.count, at));
  }
  p.sums[at] = p.divisor == 1 ? value : quotient(value, p.divisor);
}

/// `at` counts the sent elements. Their indices are ascending, so no two threads have the same.
ELASTIC_HOST_DEVICE inline void add_top_k(const AddTopK& p, std::uint64_t at) {
  float& added_to = p.sums[load_word(p.bytes + 4 * at)];
  added_to = sum(added_to, load_float(p.bytes + 4 * (std::uint64_t{p.sent} + at)));
}

ELASTIC_HOST_DEVICE inline void rescale(const Rescale& p, std::uint64_t at) {
  p.values[at] = product(p.values[at], p.factor);
}

ELASTIC_HOST_DEVICE inline void clear(const Clear& p, std::uint64_t at) {
  p.sums[at] = 0;
}

/// The end of the run that begins at `first`.
ELASTIC_HOST_DEVICE inline std::uint64_t end_of_run(std::uint64_t first, std::uint64_t count) {
  return first + kRun < count ? first + kRun : count;
}

}  // namespace elastic::kernels::codec
