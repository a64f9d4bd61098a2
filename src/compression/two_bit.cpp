#include "compression/two_bit.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "compression/finite.hpp"

namespace elastic::codecs {
namespace {

enum Code : std::uint8_t { kZero = 0, kNotANumber = 1, kMinus = 2, kPlus = 3 };

/// Takes what the code says off `value`.
Code send(float& value, float threshold) {
  if (!is_finite(value)) {
    value = 0;
    return kNotANumber;
  }
  if (value >= threshold) {
    value -= threshold;
    return kPlus;
  }
  if (value <= -threshold) {
    value += threshold;
    return kMinus;
  }
  return kZero;
}

}  // namespace

std::size_t two_bit_bytes(std::size_t count) {
  return (count + 3) / 4;
}

void encode_two_bit(std::span<float> values, float threshold, std::span<std::uint8_t> bytes) {
  std::ranges::fill(bytes, std::uint8_t{0});
  for (std::size_t at = 0; at < values.size(); ++at) {
    const unsigned code = send(values[at], threshold);
    bytes[at / 4] = static_cast<std::uint8_t>(bytes[at / 4] | code << (at % 4 * 2));
  }
}

void add_two_bit(std::span<const std::uint8_t> bytes, float threshold, std::span<float> sums) {
  const std::array<float, 4> meanings{0, std::numeric_limits<float>::quiet_NaN(), -threshold,
                                      threshold};
  for (std::size_t at = 0; at < sums.size(); ++at) {
    const unsigned code = unsigned{bytes[at / 4]} >> (at % 4 * 2) & 3U;
    sums[at] += meanings[code];
  }
}

}  // namespace elastic::codecs
