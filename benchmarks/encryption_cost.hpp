#pragma once

#include "base/status.hpp"
#include "benchmarks/collective_options.hpp"

namespace elastic::bench {

/// What encryption costs a collective over TCP: measures each size in the clear and under TLS, one
/// right after the other, in jobs of their own. Prints a line for each size and writes the reports.
Status run_encryption_cost(const CollectiveOptions& options);

}  // namespace elastic::bench
