#pragma once

#include <chrono>
#include <cstdint>
#include <sched.h>
#include <thread>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "collectives/transport/spin_backoff.hpp"
#include "collectives/transport/spin_pause.hpp"

namespace elastic::bench {

/// Waits for the other ranks: spins, then yields, by the same rules as elastic's links, because two
/// ranks may have to share a processor. Owned by the main thread.
class SpinBackoff {
 public:
  /// `looks`: the number of polls that take as long as one poll of elastic's links.
  explicit SpinBackoff(int looks) : looks_(looks) {}

  /// To be called after the `idle`-th poll in a row without success. False: neither spinning nor
  /// yielding is of use any more.
  bool rest(int idle) {
    if (idle == 1) {
      apart_until_ = learnt_.migration_spin()
                         ? Clock::now() + transport::SpinBackoff::kMigrationSpin
                         : TimePoint::min();
    }
    const int spins = learnt_.spins() * looks_;
    if (idle <= spins || Clock::now() < apart_until_) {
      transport::spin_pause();
      return true;
    }
    if (idle > spins + learnt_.yields()) return false;
    const TimePoint before = Clock::now();
    ::sched_yield();
    learnt_.yielded(Clock::now() - before);
    return true;
  }
  /// To be called after a successful poll; `idle` polls before it had no success.
  void came(int idle) {
    if (idle > 0) learnt_.waited();
  }

  /// Waits until `there()`. kUnavailable if it is false for a minute: a rank has died.
  template <typename Condition>
  Status until(const Condition& there) {
    int idle = 0;
    const auto look = [&] {
      for (int turn = 0; turn < kTurns; ++turn) {
        if (there()) return true;
        if (!rest(++idle)) std::this_thread::sleep_for(kNap);
      }
      return false;
    };
    bool found = look();
    for (const TimePoint end = found ? TimePoint() : Clock::now() + kLongest;
         !found && Clock::now() < end;) {
      found = look();
    }
    came(idle);
    return found ? Status() : Status(Code::kUnavailable, "a rank has not come for a minute");
  }

 private:
  static constexpr int kTurns = 10000;  ///< polls between two looks at the clock
  /// No rank wakes another. A short sleep gets the processor back from other programs sooner than a
  /// yield does.
  static constexpr std::chrono::microseconds kNap{1};
  static constexpr std::chrono::minutes kLongest{1};

  const int looks_;
  transport::SpinBackoff learnt_;
  TimePoint apart_until_;
};

}  // namespace elastic::bench
