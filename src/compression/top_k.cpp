#include "compression/top_k.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "compression/finite.hpp"

namespace elastic::codecs {
namespace {

constexpr double kFirstRatio = 0.25;

}  // namespace

double ratio_at(const Compression& compression, std::uint64_t step) {
  if (step >= compression.warm_up_steps || compression.ratio >= kFirstRatio) {
    return compression.ratio;
  }
  const double done = static_cast<double>(step) / static_cast<double>(compression.warm_up_steps);
  return kFirstRatio * std::pow(compression.ratio / kFirstRatio, done);
}

std::size_t top_k_count(std::size_t count, double ratio) {
  const auto wanted = static_cast<std::size_t>(std::llround(ratio * static_cast<double>(count)));
  return std::clamp(wanted, std::min<std::size_t>(count, 1), count);
}

void correct_momentum(std::span<const float> gradient, float momentum, std::span<float> u,
                      std::span<float> v) {
  for (std::size_t at = 0; at < gradient.size(); ++at) {
    u[at] = momentum * u[at] + gradient[at];
    v[at] += u[at];
  }
}

std::vector<std::uint32_t> greatest(std::span<const float> values, std::size_t count) {
  std::vector<std::uint32_t> chosen;
  if (count == 0) return chosen;
  std::vector<std::uint32_t> magnitudes(values.size());
  std::ranges::transform(values, magnitudes.begin(), magnitude_bits);
  const auto last = magnitudes.begin() + static_cast<std::ptrdiff_t>(count) - 1;
  std::nth_element(magnitudes.begin(), last, magnitudes.end(), std::greater<>());
  const std::uint32_t least = *last;
  const auto above = std::count_if(magnitudes.begin(), last,
                                   [least](std::uint32_t magnitude) { return magnitude > least; });
  std::size_t equal_left = count - static_cast<std::size_t>(above);
  chosen.reserve(count);
  for (std::size_t at = 0; at < values.size(); ++at) {
    const std::uint32_t magnitude = magnitude_bits(values[at]);
    if (magnitude < least || (magnitude == least && equal_left == 0)) continue;
    if (magnitude == least) --equal_left;
    chosen.push_back(static_cast<std::uint32_t>(at));
  }
  return chosen;
}

std::size_t top_k_bytes(std::size_t count) {
  return count * (sizeof(std::uint32_t) + sizeof(float));
}

void encode_top_k(std::span<float> v, std::span<float> u, std::size_t count,
                  std::span<std::uint8_t> bytes) {
  const std::vector<std::uint32_t> chosen = greatest(v, count);
  std::uint8_t* values = bytes.data() + chosen.size() * sizeof(std::uint32_t);
  if (!chosen.empty()) std::memcpy(bytes.data(), chosen.data(), chosen.size() * sizeof(chosen[0]));
  for (const std::uint32_t index : chosen) {
    std::memcpy(values, &v[index], sizeof(float));
    values += sizeof(float);
    v[index] = 0;
    if (!u.empty()) u[index] = 0;
  }
  for (std::size_t at = 0; at < v.size(); ++at) {
    if (is_finite(v[at]) && (u.empty() || is_finite(u[at]))) continue;
    v[at] = 0;
    if (!u.empty()) u[at] = 0;
  }
}

bool has_right_indices(std::span<const std::uint8_t> bytes, std::size_t count) {
  std::size_t least = 0;  // that the next may have
  for (std::size_t one = 0; one < bytes.size() / top_k_bytes(1); ++one) {
    std::uint32_t index = 0;
    std::memcpy(&index, bytes.data() + one * sizeof(index), sizeof(index));
    if (index < least || index >= count) return false;
    least = std::size_t{index} + 1;
  }
  return true;
}

bool add_top_k(std::span<const std::uint8_t> bytes, std::span<float> sums) {
  const std::size_t count = bytes.size() / top_k_bytes(1);
  const std::uint8_t* indices = bytes.data();
  const std::uint8_t* values = bytes.data() + count * sizeof(std::uint32_t);
  for (std::size_t one = 0; one < count; ++one) {
    std::uint32_t index = 0;
    float value = 0;
    std::memcpy(&index, indices + one * sizeof(index), sizeof(index));
    std::memcpy(&value, values + one * sizeof(value), sizeof(value));
    if (index >= sums.size()) return false;
    sums[index] += value;
  }
  return true;
}

}  // namespace elastic::codecs
