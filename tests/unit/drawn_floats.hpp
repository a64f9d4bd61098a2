#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <random>
#include <vector>

namespace elastic::testing {

inline constexpr std::uint32_t kSpecialFloats[] = {
    0,           0x80000000U, 1,           0x80000001U, 0x007fffffU, 0x00800000U, 0x7f7fffffU,
    0xff7fffffU, 0x7f800000U, 0xff800000U, 0x7fc00000U, 0xffc01234U, 0x7f800001U, 0x33000000U,
    0x387fc000U, 0x38800000U, 0x477fefffU, 0x477ff000U, 0x3f800000U, 0xbf800000U};

/// Values of one kind, with a few special ones: any bits, of the size of gradients, few that are
/// often equal, tiny ones.
inline std::vector<float> drawn_values(std::mt19937& random, std::size_t count, bool finite) {
  std::vector<float> values(count);
  const auto kind = static_cast<unsigned>(random() % 5);
  for (float& value : values) {
    const auto word = static_cast<std::uint32_t>(random());
    if (kind == 0) value = std::bit_cast<float>(word);
    if (kind == 1) value = static_cast<float>(word) * 0x1p-31F - 1;
    if (kind == 2) value = static_cast<float>(word % 7) - 3;
    if (kind == 3) value = std::bit_cast<float>(word & 0x81ffffffU);
    if (kind == 4) value = 0;
    if (kind != 4 && random() % 50 == 0) {
      value = std::bit_cast<float>(kSpecialFloats[random() % std::size(kSpecialFloats)]);
    }
    if (finite && !std::isfinite(value)) value = 2.5F;
  }
  return values;
}

inline std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits(values.size());
  if (!values.empty()) std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
  return bits;
}

}  // namespace elastic::testing
