#pragma once

#include "base/status.hpp"
#include "benchmarks/job/library_settings.hpp"
#include "benchmarks/sparse/sparse_options.hpp"

namespace elastic::bench {

/// Measures sparse_allreduce in each form, for several shares of rows, and prints the times side by
/// side on rank 0. Each rank gives rows of its own, at random; their sums are compared.
Status run_sparse(const SparseOptions& options, const LibrarySettings& settings);

}  // namespace elastic::bench
