#pragma once

#include <cstdint>
#include <sched.h>

#include "base/status.hpp"
#include "benchmarks/monotonic_time.hpp"
#include "collectives/transport/spin_pause.hpp"

namespace elastic::bench {

/// Waits for the other ranks: spins, then gives way again and again.
class Patience {
 public:
  /// Where there are more ranks than processors, who is waited for may wait for this one's.
  explicit Patience(int ranks) {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    const bool known = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0;
    spins_ = known && ranks > CPU_COUNT(&allowed) ? 0 : kSpins;
  }

  /// kUnavailable when `there()` is false for a minute: a rank has died.
  template <typename Condition>
  Status until(const Condition& there) const {
    for (int spin = 0; spin < spins_; ++spin) {
      if (there()) return {};
      transport::spin_pause();
    }
    const std::int64_t begin = now_ns();
    while (now_ns() - begin < kLongestNs) {
      for (int turn = 0; turn < kTurns; ++turn) {
        if (there()) return {};
        ::sched_yield();
      }
    }
    return Status(Code::kUnavailable, "a rank has not come for a minute");
  }

 private:
  static constexpr int kSpins = 1000;  ///< some 20 µs
  static constexpr int kTurns = 1000;  ///< before the clock is looked at
  static constexpr std::int64_t kLongestNs = 60'000'000'000;

  int spins_ = kSpins;
};

}  // namespace elastic::bench
