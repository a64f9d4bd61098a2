#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/status.hpp"
#include "benchmarks/recovery_log.hpp"

namespace elastic::bench {

/// What one run has shown.
struct RecoveryTime {
  double recovery_ms = 0;
  double undisturbed_ms = 0;  ///< median call before the fault
  bool committed = false;     ///< a call that ended after the fault still has the victim in its sum
};

/// One run: who died and when, and the calls of each survivor by the rank it started as.
struct RecoveryRun {
  int workers = 0;
  int victim = 0;
  int warmup = 0;  ///< calls that are too early to count as undisturbed
  std::int64_t fault_ns = 0;
  std::map<int, std::vector<CallRecord>> survivors;
};

/// From the fault until the last survivor had returned from the first call without the victim, less
/// the undisturbed duration of a call: the median before the fault, or that of the calls of the
/// survivors alone after it where they are faster, as two workers of which one is left are.
///
/// A call that ends after the fault with the victim in its sum is not the one: when the victim had
/// sent all of its part it is not even delayed, and the next call pays for the recovery. When it
/// was delayed, the next is as much later as an undisturbed call takes, which is taken off.
///
/// kInternal when the survivors do not agree on who was counted in a call, or the victim is
/// counted in a call after one without it.
Result<RecoveryTime> recovery_time(const RecoveryRun& run);

}  // namespace elastic::bench
