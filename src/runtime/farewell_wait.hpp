#pragma once

#include <functional>

#include "base/clock.hpp"
#include "base/mutex.hpp"

namespace elastic::runtime {

/// How long a worker that leaves waits for the others. Members end within moments of each other;
/// otherwise the server counts this worker as a leaver.
inline constexpr Milliseconds kFarewellDeadline{30000};
/// How long a worker that ends waits for an absent server: the job's end does not depend on it.
inline constexpr Milliseconds kAbsenceAtTheEnd{3000};

/// Waits at the job's end until the worker is `free_to_go`, for kFarewellDeadline at the longest,
/// and for kAbsenceAtTheEnd while it is not `connected` to the server. `lock` holds the mutex of
/// both; `changed` tells when one has changed.
inline void wait_for_farewell(MutexLock& lock, ConditionVariable& changed, const bool& connected,
                              const std::function<bool()>& free_to_go) {
  const TimePoint last = Clock::now() + kFarewellDeadline;
  while (!free_to_go() && Clock::now() < last) {
    if (connected) {
      changed.wait_interruptibly_until(lock, last, [&] { return free_to_go() || !connected; });
    } else if (!changed.wait_for(lock, kAbsenceAtTheEnd,
                                 [&] { return free_to_go() || connected; })) {
      return;
    }
  }
}

}  // namespace elastic::runtime
