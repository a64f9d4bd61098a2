#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace elastic::bench {

/// The text that printf would print.
template <typename... Values>
std::string formatted(const char* format, Values... values) {
  const int length = std::snprintf(nullptr, 0, format, values...);
  std::string text(static_cast<std::size_t>(length) + 1, '\0');
  std::snprintf(text.data(), text.size(), format, values...);
  text.pop_back();
  return text;
}

}  // namespace elastic::bench
