#pragma once

#include <algorithm>
#include <sched.h>
#include <utility>

#include "base/clock.hpp"

namespace elastic::transport {

/// How a thread waits before it sleeps: it spins, and then yields.
///
/// A wait that ends while spinning, or after short yields, doubles the spins; one that ends after
/// longer yields halves them, because the peer may want this core. A yield of 1 ms and more shows
/// that another program wants it, and turns yields off for 64 waits: an arriving message ends a
/// sleep in poll(2), but no yield. A wait that then sleeps has spun in vain, and halves the spins:
/// on a host with more ranks than cores the peer runs only once this one sleeps. Now and then a
/// wait spins for 1 ms (sched_migration_cost_ns), so that the kernel may move the peer to another
/// core; it does so less often each time.
class SpinBackoff {
 public:
  static constexpr int kFirstSpins = 32;
  static constexpr int kLeastSpins = 4;
  static constexpr int kMostYields = 200;
  /// Whatever the clock says, no system call is quicker.
  static constexpr Duration kLeast = std::chrono::nanoseconds(200);
  /// No two switches to another thread and back are as quick.
  static constexpr Duration kQuick = std::chrono::microseconds(2);
  /// Longer than a peer takes for what it does between two looks at its links.
  static constexpr Duration kLong = std::chrono::milliseconds(1);
  /// Waits without yields after a long one, until another is tried.
  static constexpr int kWaitsWithoutYields = 64;

  /// How often that is tried, in waits with yields to a peer.
  static constexpr int kFirstMigrationSpin = 128;
  static constexpr int kLastMigrationSpin = 16384;
  static constexpr Duration kMigrationSpin = std::chrono::milliseconds(1);

  /// Spins in one wait, at most. A simulation, in which spinning takes no time, sets less before it
  /// begins.
  static inline int most_spins = 256;

  int spins() const { return spins_; }
  /// Whether to spin for kMigrationSpin in this wait.
  bool migration_spin() const { return waits_with_yields_ >= migration_spin_after_; }
  int yields() const { return waits_without_yields_ > 0 ? 0 : kMostYields; }

  void yield() {
    const TimePoint before = Clock::now();
    ::sched_yield();
    yielded(Clock::now() - before);
  }
  /// A yield took so long.
  void yielded(Duration took) {
    least_ = std::clamp(took, kLeast, least_);
    if (took >= kLong) {
      waits_without_yields_ = kWaitsWithoutYields;
    } else if (took > 2 * least_ || took > kQuick) {
      yielded_to_peer_ = true;
    }
  }

  /// A wait is over, in which it was necessary to yield or not, and in the end to sleep or not.
  void waited(bool slept = false) {
    const bool in_vain = slept && yields() == 0;
    if (waits_without_yields_ > 0) --waits_without_yields_;
    if (migration_spin()) {
      waits_with_yields_ = 0;
      migration_spin_after_ = std::min(2 * migration_spin_after_, kLastMigrationSpin);
    }
    if (std::exchange(yielded_to_peer_, false)) {
      spins_ = std::max(spins_ / 2, kLeastSpins);
      ++waits_with_yields_;
    } else if (in_vain) {
      spins_ = std::max(spins_ / 2, kLeastSpins);
    } else {
      spins_ = std::min(spins_ * 2, most_spins);
    }
  }

 private:
  int spins_ = std::min(kFirstSpins, most_spins);
  int waits_without_yields_ = 0;
  int waits_with_yields_ = 0;  // waits with yields to a peer since the last migration spin
  int migration_spin_after_ = kFirstMigrationSpin;
  bool yielded_to_peer_ = false;  // in this wait, with a yield that was neither quick nor long
  Duration least_ = kQuick;
};

}  // namespace elastic::transport
