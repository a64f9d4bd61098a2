#pragma once

#include "base/status.hpp"
#include "benchmarks/library_settings.hpp"
#include "benchmarks/tune_options.hpp"

namespace elastic::bench {

/// Says what the library measured of the links between the ranks of this job, and how it makes
/// allreduces because of it. Rank 0 prints.
Status run_tune(const TuneOptions& options, const LibrarySettings& settings);

}  // namespace elastic::bench
