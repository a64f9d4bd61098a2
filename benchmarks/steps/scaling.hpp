#pragma once

#include "base/status.hpp"
#include "benchmarks/job/library_settings.hpp"
#include "benchmarks/steps/scaling_options.hpp"

namespace elastic::bench {

/// Measures scaling at one number of ranks; this process is one rank. Times steps that allreduce a
/// network's gradients during their computation, and steps that only compute, in turn. Rank 0
/// prints a row and writes the reports. \throws elastic::Error
Status run_scaling(const ScalingOptions& options, const LibrarySettings& settings);

/// Measures scaling in jobs of 1, 2 ... `np` ranks. Prints all rows and writes the reports.
Status run_scaling_jobs(const ScalingOptions& options);

}  // namespace elastic::bench
