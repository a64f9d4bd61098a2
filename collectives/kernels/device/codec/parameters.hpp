// The parameters of the kernels that encode and decode gradients: one of these for each, by value.
#pragma once

#include <cstdint>

#include "collectives/kernels/device/codec/top_k_selection.hpp"

namespace elastic::kernels::codec {

/// halves = (gradient + kept) * scale, rounded; what that takes off goes to `staged`.
struct EncodeHalf {
  const void* gradient;  ///< of float or double
  const float* kept;
  float* staged;
  std::uint16_t* halves;
  std::uint64_t count;
  float scale;
  bool is_double;
  bool is_bfloat16;
};

/// tensor = halves / scale / divisor.
struct DecodeHalf {
  const std::uint16_t* halves;
  void* tensor;  ///< of float or double
  std::uint64_t count;
  float scale;
  float divisor;
  bool is_double;
  bool is_bfloat16;
};

struct Divide {
  void* tensor;  ///< of float or double
  std::uint64_t count;
  float divisor;
  bool is_double;
};

/// staged = kept + gradient; with momentum u = momentum * kept u + gradient, staged = kept + u.
struct Stage {
  const float* gradient;
  const float* kept;
  const float* kept_momentum;  ///< may be null
  float* staged;
  float* staged_momentum;  ///< null as kept_momentum
  std::uint64_t count;
  float momentum;
};

/// Encodes `values` to `bytes`, as codecs::encode_int8, and leaves there what was not sent.
struct EncodeInt8 {
  float* values;
  std::uint8_t* bytes;
  std::uint64_t count;
  std::uint32_t block;
};

/// Copies `values` to `bytes`, and sets `cleared` and `momentum` to 0, where they are not null.
struct EncodeWhole {
  const float* values;
  float* cleared;
  float* momentum;
  std::uint8_t* bytes;
  std::uint64_t count;
};

struct EncodeTopK {
  float* values;
  float* momentum;  ///< may be null
  TopKSelection* selection;
  Chosen* parts;  ///< of kPart elements each
  std::uint8_t* bytes;
  std::uint64_t count;
  std::uint32_t sent;
  std::uint32_t pass;
};

/// sums = 0.
struct Clear {
  float* sums;
  std::uint64_t count;
};

struct Rescale {
  float* values;
  std::uint64_t count;
  float factor;
};

/// An encoded block that has all elements of a tensor.
struct DenseBlock {
  const std::uint8_t* bytes;
  std::uint32_t block;  ///< of int8; 0: floats as they are
};

inline constexpr std::uint32_t kMostDenseBlocks = 32;

/// sums = (sums + the blocks one after another) / divisor; 0 in place of sums where it begins them.
struct AddDense {
  DenseBlock blocks[kMostDenseBlocks];
  float* sums;
  std::uint64_t count;
  std::uint32_t used;  ///< of the blocks
  float divisor;
  bool begins;
};

/// Adds an encoded block of top_k to `sums`.
struct AddTopK {
  const std::uint8_t* bytes;
  float* sums;
  std::uint64_t count;  ///< of the sums
  std::uint32_t sent;
};

inline constexpr std::uint32_t kThreads = 256;
inline constexpr std::uint32_t kPart = kThreads * kRun;  ///< elements of a block of threads

inline constexpr std::uint64_t parts_of(std::uint64_t count) {
  return (count + kPart - 1) / kPart;
}
inline constexpr std::uint64_t blocks_of(std::uint64_t count, std::uint32_t block) {
  return (count + block - 1) / block;
}

}  // namespace elastic::kernels::codec
