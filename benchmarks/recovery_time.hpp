#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/status.hpp"
#include "benchmarks/recovery_log.hpp"

namespace elastic::bench {

/// Where the time went on the survivor that returned last, in milliseconds. Their sum is
/// RecoveryTime::return_ms.
struct RecoveryPhases {
  double detect = 0;  ///< until it noticed
  double freeze = 0;  ///< until it had told the server that it stands still
  double decide = 0;  ///< until it had the new view, which was in the journal before
  double relink = 0;  ///< until it was linked with the members and operations went on
  double replay = 0;  ///< until its call returned
};

/// What one run has shown.
struct RecoveryTime {
  double return_ms = 0;    ///< from the fault until the last survivor had returned
  double recovery_ms = 0;  ///< that beyond an undisturbed call; 0 where it was as quick
  double undisturbed_ms = 0;
  bool committed = false;  ///< a call that ended after the fault still has a victim in its sum
  RecoveryPhases phases;
};

struct Survivor {
  std::vector<CallRecord> calls;
  ChangeRecord change;
};

/// One run: whom the fault struck and when, and what the survivors saw, by the rank that each
/// started as.
struct RecoveryRun {
  int workers = 0;
  std::vector<int> victims;
  int warmup = 0;  ///< calls that are too early to count as undisturbed
  std::int64_t fault_ns = 0;
  std::map<int, Survivor> survivors;
};

/// From the fault until the last survivor had returned from the first call without any victim. The
/// undisturbed duration of a call is the median before the fault, or that of the calls of the
/// survivors alone after it where they are faster, as two workers of which one is left are.
///
/// A call that ends after the fault with a victim in its sum is not the one: when the victim had
/// sent all of its part it is not even delayed, and the next call pays for the recovery. When it
/// was delayed, the next is as much later as an undisturbed call takes, which is taken off.
///
/// kInternal when the survivors do not agree on who was counted in a call, or a victim is counted
/// in a call after one without it.
///
/// Without victims, all being survivors, the call is the first that ended in the view after the
/// fault; a survivor that has not been in a new view since is an error.
Result<RecoveryTime> recovery_time(const RecoveryRun& run);

}  // namespace elastic::bench
