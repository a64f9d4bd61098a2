#pragma once

#include "base/status.hpp"
#include "benchmarks/fusion_options.hpp"
#include "benchmarks/library_settings.hpp"

namespace elastic::bench {

/// This process as one rank: times steps of all kinds on all backends in turn. Rank 0 prints the
/// table and writes the reports. Throws elastic::Error. kInternal, after the table, when an element
/// was wrong.
Status run_fusion(const FusionOptions& options, const LibrarySettings& settings);

}  // namespace elastic::bench
