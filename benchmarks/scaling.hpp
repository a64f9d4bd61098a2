#pragma once

#include "base/status.hpp"
#include "benchmarks/library_settings.hpp"
#include "benchmarks/scaling_options.hpp"

namespace elastic::bench {

/// This process as one rank: times steps that allreduce a network's gradients while they are
/// computed, and steps that only compute, in turn. Rank 0 prints a row and writes the reports.
/// Throws elastic::Error.
Status run_scaling(const ScalingOptions& options, const LibrarySettings& settings);

/// The same in jobs of 1, 2 ... `np` ranks. Prints all rows and writes the reports.
Status run_scaling_jobs(const ScalingOptions& options);

}  // namespace elastic::bench
