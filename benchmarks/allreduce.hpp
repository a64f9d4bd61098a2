#pragma once

#include "base/status.hpp"
#include "benchmarks/command_line.hpp"
#include "benchmarks/library_settings.hpp"

namespace elastic::bench {

/// Becomes an elasticrun that starts the ranks. Returns only on failure.
Status start_ranks(const AllreduceOptions& options);

/// This process as one rank. Rank 0 prints the table and writes the report. Throws elastic::Error.
/// kInternal, after the table, when an element was wrong.
Status run_allreduce(const AllreduceOptions& options, const LibrarySettings& settings);

}  // namespace elastic::bench
