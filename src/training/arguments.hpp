#pragma once

#include <cmath>
#include <string>
#include <string_view>

namespace elastic::training {

inline bool positive(double value) {
  return std::isfinite(value) && value > 0;
}

inline bool not_negative(double value) {
  return std::isfinite(value) && value >= 0;
}

// For a value that is used in single precision: as above, and still so as a float.

inline bool positive_float(double value) {
  return positive(static_cast<float>(value));
}

inline bool not_negative_float(double value) {
  return value >= 0 && std::isfinite(static_cast<float>(value));
}

/// From 0 to below 1.
inline bool part_float(double value) {
  return value >= 0 && static_cast<float>(value) < 1;
}

/// The shortest text that reads back as `value`.
std::string text_of(double value);

/// Throws Error(kInvalidArgument), "<where>: <what> is <value>; give <range>", unless `valid`.
void require(bool valid, std::string_view where, std::string_view what, double value,
             std::string_view range);

}  // namespace elastic::training
