#pragma once

#include <string>

#include "benchmarks/job/rank_options.hpp"

namespace elastic::bench {

/// Options of `elastic-bench fusion`.
struct FusionOptions : RankOptions {
  std::string model = "resnet50";  ///< see model_names
  int iterations = 20;             ///< steps of each kind and backend
  int warmup = 2;                  ///< in each turn
  int turns = 4;                   ///< of each kind and backend
  bool check = true;
};

}  // namespace elastic::bench
