#pragma once

#include "base/status.hpp"
#include "benchmarks/command_line.hpp"

namespace elastic::bench {

/// One worker of a join, under elasticrun: trains in short steps until a newcomer has been admitted
/// and some steps beyond, then measures broadcasts. Worker 0 asks for the newcomer. Writes a
/// JoinRecord into the folder. Throws elastic::Error.
Status run_join_worker(const JoinWorkerOptions& options);

}  // namespace elastic::bench
