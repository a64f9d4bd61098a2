#pragma once

#include <array>
#include <cstddef>

namespace elastic::kernels::codec {

/// The kernels of kernels.cu.
enum class Kernel {
  kEncodeHalf,
  kDecodeHalf,
  kDivide,
  kStage,
  kEncodeInt8,
  kEncodeWhole,
  kBeginTopK,
  kCountDigits,
  kTakeDigit,
  kCountChosen,
  kPlaceParts,
  kWriteChosen,
  kClear,
  kAddDense,
  kAddTopK,
  kRescale
};

/// Their names in the image, in the order of Kernel.
inline constexpr std::array<const char*, 16> kKernelNames{
    "elastic_encode_half", "elastic_decode_half",  "elastic_divide",      "elastic_stage",
    "elastic_encode_int8", "elastic_encode_whole", "elastic_begin_top_k", "elastic_count_digits",
    "elastic_take_digit",  "elastic_count_chosen", "elastic_place_parts", "elastic_write_chosen",
    "elastic_clear",       "elastic_add_dense",    "elastic_add_top_k",   "elastic_rescale"};

constexpr std::size_t index_of(Kernel kernel) {
  return static_cast<std::size_t>(kernel);
}

}  // namespace elastic::kernels::codec
