#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "elastic/types.hpp"

namespace elastic::bench {

/// Inputs whose reductions are known without a collective: small whole numbers that differ between
/// ranks and places. Results are exact in every dtype for up to 64 ranks (15 for the product of
/// float16), so they are compared for equality.
///
/// They repeat after a prime number of elements, so that pieces of a tensor, whose sizes are round
/// numbers, cannot be exchanged unnoticed.
class Pattern {
 public:
  static constexpr std::size_t kPeriod = 4093;

  Pattern(DType dtype, ReduceOp op, int ranks);

  /// Rank `rank`'s input.
  void fill(TensorView tensor, int rank) const;
  /// Elements of `tensor` that differ from the reduction of all ranks' inputs; `tensor` is the part
  /// of it that starts at element `first`.
  std::int64_t count_wrong(ConstTensorView tensor, std::size_t first = 0) const;
  /// Elements of `tensor` that differ from rank `rank`'s input.
  std::int64_t count_unlike_input(ConstTensorView tensor, int rank) const;

 private:
  ReduceOp op_;
  std::vector<std::byte> expected_;  // one period
};

}  // namespace elastic::bench
