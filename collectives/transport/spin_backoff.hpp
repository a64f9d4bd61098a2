#pragma once

#include <algorithm>
#include <utility>

#include "base/clock.hpp"

namespace elastic::transport {

/// How a thread waits before it sleeps: it spins, and then lets others run. How long it spins is
/// learnt from how waits end:
/// - while it spins, or after yields that took the least there is: no other thread wants this
///   core, and spinning answers soonest;
/// - after longer yields: a peer may want the core. A thread that spins keeps the very peer from
///   running that it waits for. Or another program wants it, which now and then keeps the peer from
///   answering, too; but then most waits end as above.
/// Ranks that yield to each other on one core stay there, even where another core is free: to the
/// kernel they look like tasks whose data is in that core's cache. So now and then a thread spins
/// for as long as its peer takes to look different (sched_migration_cost_ns), less often each time.
/// After a very long yield it is certain that another program wants the core. The next waits then
/// do without yields, because an arriving message ends a sleep in poll(2), but no yield.
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

  /// A yield took so long.
  void yielded(Duration took) {
    least_ = std::clamp(took, kLeast, least_);
    if (took >= kLong) {
      waits_without_yields_ = kWaitsWithoutYields;
    } else if (took > 2 * least_ || took > kQuick) {
      yielded_to_peer_ = true;
    }
  }

  /// A wait is over, in which it was necessary to yield or not.
  void waited() {
    if (waits_without_yields_ > 0) --waits_without_yields_;
    if (migration_spin()) {
      waits_with_yields_ = 0;
      migration_spin_after_ = std::min(2 * migration_spin_after_, kLastMigrationSpin);
    }
    if (std::exchange(yielded_to_peer_, false)) {
      spins_ = std::max(spins_ / 2, kLeastSpins);
      ++waits_with_yields_;
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
