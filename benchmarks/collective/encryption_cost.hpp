#pragma once

#include "base/status.hpp"
#include "benchmarks/collective/collective_options.hpp"

namespace elastic::bench {

/// Measures the cost of encryption for a collective over TCP: each size in the clear and then under
/// TLS, in separate jobs. Prints a line for each size and writes the reports.
Status run_encryption_cost(const CollectiveOptions& options);

}  // namespace elastic::bench
