#pragma once

#include <span>

#include "compression/finite.hpp"
#include "elastic/half.hpp"

namespace elastic::codecs {

/// Rounds values * scale, a power of two, to the nearest half. Leaves what the rounding took off in
/// `values`: 0 where the half is no finite number.
template <typename Half>
void to_half(std::span<float> values, float scale, std::span<Half> halves) {
  for (std::size_t at = 0; at < values.size(); ++at) {
    halves[at] = Half(values[at] * scale);
    const float sent = static_cast<float>(halves[at]) / scale;
    values[at] = is_finite(sent) ? values[at] - sent : 0.0F;
  }
}

template <typename Half>
void from_half(std::span<const Half> halves, float scale, std::span<float> values) {
  for (std::size_t at = 0; at < values.size(); ++at) {
    values[at] = static_cast<float>(halves[at]) / scale;
  }
}

}  // namespace elastic::codecs
