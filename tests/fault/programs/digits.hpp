#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace elastic::fault {

/// The oracle: worker `slot` contributes 10^slot, so the decimal digits of a sum show how often
/// each worker was counted. Slots are 0 to 17.
inline std::int64_t digit(int slot) {
  std::int64_t value = 1;
  for (int i = 0; i < slot; ++i) value *= 10;
  return value;
}

/// Throws unless each worker is in `sum` at most once, this worker is in it, and their number is
/// that of `contributors`.
inline void check_digits(std::int64_t sum, std::size_t contributors, int slot) {
  const auto wrong = [sum](const std::string& what) {
    throw std::logic_error(what + ": " + std::to_string(sum));
  };
  std::size_t counted = 0;
  for (std::int64_t rest = sum; rest != 0; rest /= 10) {
    if (rest % 10 > 1 || rest < 0) wrong("counted twice");
    counted += static_cast<std::size_t>(rest % 10);
  }
  if (sum / digit(slot) % 10 != 1) wrong("own contribution missing");
  if (counted != contributors) wrong("library says " + std::to_string(contributors) + " counted");
}

}  // namespace elastic::fault
