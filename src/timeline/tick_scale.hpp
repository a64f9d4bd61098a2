#pragma once

#include <cstdint>

#include "base/clock.hpp"
#include "base/ticks.hpp"

namespace elastic::timeline {

/// Converts ticks of the processor into nanoseconds of Clock. The longer it exists, the better it
/// knows how long a tick is. One thread.
class TickScale {
 public:
  TickScale() { anchor(); }

  /// Compares the two anew. Times of a moment shortly before the last call are right within the
  /// cost of reading Clock.
  void anchor() {
    latest_ = {ticks(), Clock::now().time_since_epoch().count()};
    if (first_.ticks == 0) first_ = latest_;
    const std::int64_t passed = latest_.ticks - first_.ticks;
    if (passed > 0) {
      per_tick_ = static_cast<double>(latest_.nanoseconds - first_.nanoseconds) /
                  static_cast<double>(passed);
    }
  }

  std::int64_t nanoseconds(std::int64_t at) const {
    return latest_.nanoseconds +
           static_cast<std::int64_t>(static_cast<double>(at - latest_.ticks) * per_tick_);
  }

 private:
  struct Anchor {
    std::int64_t ticks = 0;
    std::int64_t nanoseconds = 0;
  };
  Anchor first_;
  Anchor latest_;
  double per_tick_ = 1;
};

}  // namespace elastic::timeline
