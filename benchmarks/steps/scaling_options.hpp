#pragma once

#include <string>

#include "benchmarks/job/rank_options.hpp"

namespace elastic::bench {

/// Options of `elastic-bench scaling`.
struct ScalingOptions : RankOptions {
  std::string model = "resnet50";  ///< see model_names
  double compute_ms = 170;         ///< of a step's forward and backward pass together
  int iterations = 12;             ///< steps of each kind
  int warmup = 1;                  ///< in each turn
  int turns = 4;                   ///< of each kind
};

}  // namespace elastic::bench
