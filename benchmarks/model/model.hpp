#pragma once

#include "base/status.hpp"
#include "benchmarks/model/model_options.hpp"

namespace elastic::bench {

/// `elastic-bench model`: prints the price of an allreduce, size by size.
Status run_model(const ModelOptions& options);

}  // namespace elastic::bench
