#pragma once

#include <utility>

#include "base/clock.hpp"
#include "collectives/transport/spin_backoff.hpp"

namespace elastic::transport {

/// The rounds of a thread that looks at its links again and again: after one in which nothing
/// moved it spins, later yields, and at last has to sleep, as SpinBackoff has it.
class IdleRounds {
 public:
  explicit IdleRounds(SpinBackoff& backoff) : backoff_(backoff) {}

  /// Something moved, or the wait is over.
  void end() {
    if (std::exchange(idle_, 0) > 0) backoff_.waited();
  }
  /// Nothing moved. \returns whether to look again at once; otherwise sleep, and call `slept`.
  bool look_again() {
    if (++idle_ == 1) {
      spin_end_ =
          backoff_.migration_spin() ? Clock::now() + SpinBackoff::kMigrationSpin : TimePoint::min();
    }
    if (idle_ <= backoff_.spins() || Clock::now() < spin_end_) return true;
    if (idle_ > backoff_.spins() + backoff_.yields()) return false;
    backoff_.yield();
    return true;
  }
  void slept() {
    backoff_.waited(/*slept=*/true);
    idle_ = 0;
  }

 private:
  SpinBackoff& backoff_;
  int idle_ = 0;
  TimePoint spin_end_;
};

}  // namespace elastic::transport
