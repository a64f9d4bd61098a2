#pragma once

#include <string>

#include "benchmarks/byte_size.hpp"
#include "benchmarks/rank_options.hpp"
#include "elastic/types.hpp"

namespace elastic::bench {

/// `elastic-bench allreduce` and the other collectives.
struct CollectiveOptions : RankOptions {
  std::string operation = "allreduce";  ///< see collective_names
  SizeRange sizes;
  int iterations = 20;  ///< of each size and backend
  int warmup = 5;       ///< in each turn
  int turns = 0;        ///< of each backend at each size; 0: 4 where there are several, or 1
  bool check = true;
  std::string memory = "malloc";  ///< where the tensors lie; or "allocated": Context::allocate
  DType dtype = DType::kF32;
  ReduceOp op = ReduceOp::kSum;
};

}  // namespace elastic::bench
