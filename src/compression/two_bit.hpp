#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace elastic::codecs {

/// Bytes that `count` elements take: four in a byte, the first in the lowest bits.
std::size_t two_bit_bytes(std::size_t count);

/// Each v >= threshold as +threshold, each v <= -threshold as -threshold, others as 0, as MXNet
/// does. Leaves what is not sent in `values`. NaN and Inf are sent as NaN, the fourth code, and
/// leave 0.
void encode_two_bit(std::span<float> values, float threshold, std::span<std::uint8_t> bytes);

void add_two_bit(std::span<const std::uint8_t> bytes, float threshold, std::span<float> sums);

}  // namespace elastic::codecs
