#pragma once

#include "base/status.hpp"
#include "benchmarks/command_line.hpp"

namespace elastic::bench {

/// Runs one worker of a join, under elasticrun. It trains in short steps until some steps after a
/// joiner was admitted, then measures broadcasts, and writes a JoinRecord into the folder. Worker 0
/// has the joiner started. \throws elastic::Error
Status run_join_worker(const JoinWorkerOptions& options);

}  // namespace elastic::bench
