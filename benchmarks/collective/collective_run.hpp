#pragma once

#include "base/status.hpp"
#include "benchmarks/collective/collective_options.hpp"
#include "benchmarks/job/library_settings.hpp"

namespace elastic::bench {

/// Measures a collective; this process is one rank. Rank 0 prints the table and writes the reports.
/// kInternal, after the table, if an element was wrong. \throws elastic::Error
Status run_collective(const CollectiveOptions& options, const LibrarySettings& settings);

}  // namespace elastic::bench
