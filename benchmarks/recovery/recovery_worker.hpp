#pragma once

#include "base/status.hpp"
#include "benchmarks/command_line.hpp"

namespace elastic::bench {

/// The calls of each worker: warm-up calls, undisturbed calls, the call with the fault, and then
/// calls of the survivors alone.
inline constexpr int kWarmupCalls = 5;
inline constexpr int kUndisturbedCalls = 15;
inline constexpr int kFaultCall = kWarmupCalls + kUndisturbedCalls;
inline constexpr int kAllCalls = kFaultCall + 12;

/// Runs one worker, under elasticrun. Writes its calls and its view change into the folder; a
/// victim does not return. \throws elastic::Error
Status run_recovery_worker(const RecoveryWorkerOptions& options);

}  // namespace elastic::bench
