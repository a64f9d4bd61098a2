#pragma once

#include "base/status.hpp"
#include "benchmarks/job/library_settings.hpp"
#include "benchmarks/steps/fusion_options.hpp"

namespace elastic::bench {

/// Measures steps of all kinds on all backends in turn; this process is one rank. Rank 0 prints the
/// table and writes the reports. kInternal, after the table, if an element was wrong.
/// \throws elastic::Error
Status run_fusion(const FusionOptions& options, const LibrarySettings& settings);

}  // namespace elastic::bench
