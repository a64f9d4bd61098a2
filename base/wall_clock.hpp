#pragma once

#include <chrono>
#include <cstdint>

namespace elastic {

/// The wall clock, in milliseconds since 1970: only for what people read, or another machine. It
/// may be corrected at any time; see Clock for everything else.
inline std::int64_t milliseconds_since_1970() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

/// The same in nanoseconds.
inline std::int64_t nanoseconds_since_1970() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

}  // namespace elastic
