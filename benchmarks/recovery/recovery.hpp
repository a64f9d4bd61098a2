#pragma once

#include "base/status.hpp"
#include "benchmarks/command_line.hpp"
#include "benchmarks/job/library_settings.hpp"

namespace elastic::bench {

/// Measures recovery: starts a job for each run, injects a fault into one of its workers or links,
/// and reports the time that the survivors needed.
Status run_recovery(const RecoveryOptions& options, const LibrarySettings& settings);

}  // namespace elastic::bench
