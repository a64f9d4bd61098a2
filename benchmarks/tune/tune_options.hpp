#pragma once

#include "benchmarks/job/rank_options.hpp"

namespace elastic::bench {

/// Options of `elastic-bench tune`.
struct TuneOptions : RankOptions {};

}  // namespace elastic::bench
