#pragma once

#include "base/status.hpp"
#include "benchmarks/collective_options.hpp"
#include "benchmarks/library_settings.hpp"

namespace elastic::bench {

/// This process as one rank. Rank 0 prints the table and writes the reports. Throws elastic::Error.
/// kInternal, after the table, when an element was wrong.
Status run_collective(const CollectiveOptions& options, const LibrarySettings& settings);

}  // namespace elastic::bench
