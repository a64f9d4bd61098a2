#pragma once

#include "base/status.hpp"
#include "benchmarks/command_line.hpp"
#include "benchmarks/library_settings.hpp"

namespace elastic::bench {

/// Starts a job for each run, one of whose workers dies, and tells how long the others needed.
Status run_recovery(const RecoveryOptions& options, const LibrarySettings& settings);

}  // namespace elastic::bench
