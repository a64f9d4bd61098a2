#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

namespace elastic::fault {

/// The oracle of jobs that have more workers than a sum has digits. A tensor has a flag for each
/// slot from 0 to kFlags - 1, again and again, and a worker sets those of its own slot. A sum of
/// them shows in each of its parts how often each worker was counted.
inline constexpr std::size_t kFlags = 128;

inline void set_flags(std::span<std::int32_t> tensor, int slot) {
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    tensor[i] = i % kFlags == static_cast<std::size_t>(slot) ? 1 : 0;
  }
}

/// Throws unless each worker is in the sum at most once and in all parts or in none, this worker is
/// in it, and their number is that of `contributors`.
/// \returns a character for each slot, '1' for those that were counted.
inline std::string check_flags(std::span<const std::int32_t> sum, std::size_t contributors,
                               int slot) {
  std::string counted(kFlags, '0');
  for (std::size_t i = 0; i < kFlags; ++i) {
    if (sum[i] == 1) counted[i] = '1';
  }
  for (std::size_t i = 0; i < sum.size(); ++i) {
    if (sum[i] != counted[i % kFlags] - '0') {
      throw std::logic_error("element " + std::to_string(i) + " is " + std::to_string(sum[i]) +
                             ", and the slots counted are " + counted);
    }
  }
  if (counted[static_cast<std::size_t>(slot)] != '1') {
    throw std::logic_error("own contribution missing: " + counted);
  }
  if (static_cast<std::size_t>(std::ranges::count(counted, '1')) != contributors) {
    throw std::logic_error("library says " + std::to_string(contributors) + " counted: " + counted);
  }
  return counted;
}

}  // namespace elastic::fault
