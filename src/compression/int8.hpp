#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace elastic::codecs {

/// Bytes that `count` elements take: a scale for each block, and a byte for each element.
std::size_t int8_bytes(std::size_t count, std::uint32_t block);

/// Each block b as q = round(v / s_b) with s_b = max|v| / 127, ties to even. Leaves v - q * s_b in
/// `values`. A block with NaN or Inf has the scale NaN; its finite elements stay as they are, and
/// the others become 0.
void encode_int8(std::span<float> values, std::uint32_t block, std::span<std::uint8_t> bytes);

/// Adds q * s_b to `sums`.
void add_int8(std::span<const std::uint8_t> bytes, std::uint32_t block, std::span<float> sums);

}  // namespace elastic::codecs
