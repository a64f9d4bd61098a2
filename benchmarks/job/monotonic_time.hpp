#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.hpp"

namespace elastic::bench {

/// The time in nanoseconds of the monotonic clock, which all processes of a machine share.
inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

}  // namespace elastic::bench
