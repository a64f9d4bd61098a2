#pragma once

#include <algorithm>
#include <chrono>
#include <random>

#include "base/clock.hpp"

namespace elastic::rendezvous {

/// Pauses between attempts: each about twice the one before, with jitter so that clients that lost
/// the same server do not come back in step.
class Backoff {
 public:
  Backoff(Milliseconds first, Milliseconds most) : next_(first), most_(most) {}
  Duration pause() {
    const double factor = std::uniform_real_distribution<double>(0.5, 1.0)(random_);
    const auto result = std::chrono::duration_cast<Duration>(next_ * factor);
    next_ = std::min(next_ * 2, most_);
    return result;
  }

 private:
  std::minstd_rand random_{std::random_device{}()};
  Milliseconds next_;
  Milliseconds most_;
};

}  // namespace elastic::rendezvous
