#pragma once

#include <cstdint>

#include "base/clock.hpp"

namespace elastic {

/// A count that grows evenly, in a unit that only a comparison with Clock tells. For callers to
/// which the cost of Clock itself would matter. Processors may differ a little, so it can go
/// backwards.
inline std::int64_t ticks() noexcept {
#if defined(__x86_64__)
  return static_cast<std::int64_t>(__builtin_ia32_rdtsc());
#elif defined(__aarch64__)
  std::int64_t count = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
#else
  return Clock::now().time_since_epoch().count();
#endif
}

}  // namespace elastic
