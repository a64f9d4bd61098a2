#pragma once

#include "base/status.hpp"
#include "benchmarks/command_line.hpp"

namespace elastic::bench {

/// What encryption costs an allreduce over TCP: measures each size in the clear and under TLS, one
/// right after the other, in jobs of their own. Prints a line for each size and writes the report.
Status run_encryption_cost(const AllreduceOptions& options);

}  // namespace elastic::bench
