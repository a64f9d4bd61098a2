#pragma once

#include "base/status.hpp"
#include "benchmarks/command_line.hpp"

namespace elastic::bench {

/// Calls that each worker makes: to warm up, to know the undisturbed time, the one in which the
/// fault strikes, and some of the survivors alone.
inline constexpr int kWarmupCalls = 5;
inline constexpr int kUndisturbedCalls = 15;
inline constexpr int kFaultCall = kWarmupCalls + kUndisturbedCalls;
inline constexpr int kAllCalls = kFaultCall + 12;

/// One worker of a run, under elasticrun. Writes its calls and its change of the view into the
/// folder; a victim does not return. Throws elastic::Error.
Status run_recovery_worker(const RecoveryWorkerOptions& options);

}  // namespace elastic::bench
