#pragma once

#include "benchmarks/rank_options.hpp"

namespace elastic::bench {

/// `elastic-bench tune`.
struct TuneOptions : RankOptions {};

}  // namespace elastic::bench
