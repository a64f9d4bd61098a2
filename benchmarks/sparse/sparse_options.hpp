#pragma once

#include <cstddef>
#include <vector>

#include "benchmarks/job/rank_options.hpp"

namespace elastic::bench {

/// Options of `elastic-bench sparse`.
struct SparseOptions : RankOptions {
  std::size_t rows = 65'536;  ///< of the tensor
  std::size_t width = 64;     ///< elements of a row, which are floats
  /// The share of all rows that each rank gives, in per cent.
  std::vector<double> shares{0.1, 1, 3, 10, 20, 30, 50, 70, 100};
  int iterations = 10;  ///< of each form and share
  int warmup = 2;       ///< of each form and share
};

}  // namespace elastic::bench
