#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/status.hpp"
#include "benchmarks/recovery/recovery_log.hpp"

namespace elastic::bench {

/// The phases of recovery on the survivor that returned last, in milliseconds. Their sum is
/// RecoveryTime::return_ms.
struct RecoveryPhases {
  double detect = 0;  ///< until it noticed the fault
  double freeze = 0;  ///< until it had reported to the server that it is quiesced
  double decide = 0;  ///< until it had the new view, which the server journals first
  double relink = 0;  ///< until it was linked with all members, and operations went on
  double replay = 0;  ///< until its call returned
};

/// The result of one run.
struct RecoveryTime {
  double return_ms = 0;       ///< from the fault until the last survivor had returned
  double recovery_ms = 0;     ///< `return_ms` less an undisturbed call; at least 0
  double change_ms = 0;       ///< from the fault until the last survivor was in the new view
  double undisturbed_ms = 0;  ///< duration of an undisturbed call
  bool committed = false;     ///< a call that ended after the fault has a victim in its sum
  RecoveryPhases phases;
};

struct Survivor {
  std::vector<CallRecord> calls;
  ChangeRecord change;
};

/// The records of one run: the victims, the time of the fault, and the survivors' calls. All ranks
/// are those at the start of the job.
struct RecoveryRun {
  int workers = 0;
  std::vector<int> victims;
  int warmup = 0;  ///< first calls, which do not count as undisturbed
  std::int64_t fault_ns = 0;
  std::map<int, Survivor> survivors;
};

/// Evaluates a run. The recovery ends when the last survivor returns from the first call without
/// any victim. The undisturbed duration of a call is the median before the fault, or the median of
/// the survivors' later calls if these are faster, as with one survivor of two workers.
///
/// A call that ends after the fault with a victim in its sum is not the end. If the victim had sent
/// all of its part, this call is not even delayed, and the next call includes the recovery. If the
/// call was delayed, the next ends later by one undisturbed call, which is subtracted.
///
/// kInternal if the survivors have different contributors in a call, or if a victim contributes to
/// a call after one without it.
///
/// In a run without victims all workers are survivors, and the call is the first that ended in the
/// view after the fault. A survivor without a new view after the fault is an error.
Result<RecoveryTime> recovery_time(const RecoveryRun& run);

}  // namespace elastic::bench
