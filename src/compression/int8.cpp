#include "compression/int8.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "compression/finite.hpp"

namespace elastic::codecs {
namespace {

constexpr float kMost = 127;

std::size_t blocks(std::size_t count, std::uint32_t block) {
  return (count + block - 1) / block;
}

/// To the nearest whole number, ties to even; for magnitudes below 2^22. Vectorizes, as
/// std::nearbyint does not everywhere.
float nearest(float value) {
  constexpr float kShift = 0x1.8p23F;
  return (value + kShift) - kShift;
}

/// NaN where the block has NaN or Inf.
float scale_of(std::span<const float> values) {
  std::uint32_t most = 0;
  for (const float value : values) most = std::max(most, magnitude_bits(value));
  if (most >= kInfinity) return std::numeric_limits<float>::quiet_NaN();
  const float scale = std::bit_cast<float>(most) / kMost;
  // Rounded up, it would have the greatest of all floats come back as Inf.
  return is_finite(kMost * scale) ? scale : std::nextafter(scale, 0.0F);
}

void encode(std::span<float> values, float scale, std::uint8_t* bytes) {
  for (std::size_t at = 0; at < values.size(); ++at) {
    // The scale of tiny numbers is rounded coarsely, so that more than 127 of it can be needed.
    const float steps = nearest(std::clamp(values[at] / scale, -kMost, kMost));
    bytes[at] = static_cast<std::uint8_t>(static_cast<std::int8_t>(steps));
    values[at] -= steps * scale;
  }
}

}  // namespace

std::size_t int8_bytes(std::size_t count, std::uint32_t block) {
  return blocks(count, block) * sizeof(float) + count;
}

void encode_int8(std::span<float> values, std::uint32_t block, std::span<std::uint8_t> bytes) {
  std::uint8_t* scales = bytes.data();
  std::uint8_t* steps = bytes.data() + blocks(values.size(), block) * sizeof(float);
  for (std::size_t first = 0; first < values.size(); first += block, scales += sizeof(float)) {
    const auto part = values.subspan(first, std::min<std::size_t>(block, values.size() - first));
    const float scale = scale_of(part);
    std::memcpy(scales, &scale, sizeof(scale));
    if (scale > 0) {
      encode(part, scale, steps + first);
      continue;
    }
    std::memset(steps + first, 0, part.size());
    std::ranges::replace_if(
        part, [](float value) { return !is_finite(value); }, 0.0F);
  }
}

void add_int8(std::span<const std::uint8_t> bytes, std::uint32_t block, std::span<float> sums) {
  const std::uint8_t* scales = bytes.data();
  const std::uint8_t* steps = bytes.data() + blocks(sums.size(), block) * sizeof(float);
  for (std::size_t first = 0; first < sums.size(); first += block, scales += sizeof(float)) {
    float scale = 0;
    std::memcpy(&scale, scales, sizeof(scale));
    const std::size_t end = std::min<std::size_t>(sums.size(), first + block);
    for (std::size_t at = first; at < end; ++at) {
      sums[at] += static_cast<float>(static_cast<std::int8_t>(steps[at])) * scale;
    }
  }
}

}  // namespace elastic::codecs
