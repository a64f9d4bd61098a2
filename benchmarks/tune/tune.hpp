#pragma once

#include "base/status.hpp"
#include "benchmarks/job/library_settings.hpp"
#include "benchmarks/tune/tune_options.hpp"

namespace elastic::bench {

/// Prints on rank 0 the library's measurements of the links between the ranks of this job, and the
/// allreduce algorithms that it has chosen by them.
Status run_tune(const TuneOptions& options, const LibrarySettings& settings);

}  // namespace elastic::bench
