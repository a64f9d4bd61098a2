#pragma once

#include <string>

#include "benchmarks/job/rank_options.hpp"
#include "benchmarks/report/byte_size.hpp"
#include "elastic/types.hpp"

namespace elastic::bench {

/// Options of `elastic-bench allreduce` and of the other collectives.
struct CollectiveOptions : RankOptions {
  std::string operation = "allreduce";  ///< see collective_names
  SizeRange sizes;
  int iterations = 20;  ///< of each size and backend
  int warmup = 5;       ///< in each turn
  int turns = 0;        ///< of each backend at each size; 0: 4 with several backends, 1 with one
  bool check = true;
  /// A barrier before each call, not timed, and the time of a call is that of the slowest rank. In
  /// a loop without it the calls of a library that returns early overlap.
  bool apart = false;
  std::string memory = "malloc";  ///< of the tensors; or "allocated", for Context::allocate
  DType dtype = DType::kF32;
  ReduceOp op = ReduceOp::kSum;
};

}  // namespace elastic::bench
