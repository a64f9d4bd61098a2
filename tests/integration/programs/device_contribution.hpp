#pragma once

#include <cstddef>
#include <random>
#include <type_traits>
#include <vector>

/// Contributions of programs that check collectives of tensors on a device.
namespace elastic::testing {

/// Small whole numbers only: the order in which they are reduced does not matter.
inline bool exact = false;

template <typename T>
std::vector<T> contribution(int rank, std::size_t count) {
  std::vector<T> values(count);
  std::mt19937 random(static_cast<unsigned>(rank) * 77 + static_cast<unsigned>(count));
  for (T& value : values) {
    const auto whole = static_cast<int>(random() % 200);
    if (exact) {
      value = static_cast<T>(static_cast<float>(whole % 4));
      continue;
    }
    if constexpr (std::is_class_v<T>) {
      value = T(static_cast<float>(whole - 100) / 7);
    } else if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(whole / 50);
    } else {
      value = static_cast<T>(whole - 100) / 7;
    }
  }
  return values;
}

}  // namespace elastic::testing
