#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "elastic/types.hpp"

namespace elastic::bench {

/// Inputs with reductions that are known without a collective: small integers that differ between
/// ranks and places. Results are exact in every dtype for up to 64 ranks (15 for the product of
/// float16), so they are compared for equality.
///
/// The inputs repeat after a prime number of elements, so that a swap of two blocks of a tensor,
/// which have round sizes, does not go unnoticed.
class Pattern {
 public:
  static constexpr std::size_t kPeriod = 4093;

  Pattern(DType dtype, ReduceOp op, int ranks);

  /// Fills `tensor` with the input of rank `rank`.
  void fill(TensorView tensor, int rank) const;
  /// The number of elements of `tensor` that differ from the reduction of all ranks' inputs, from
  /// its element `first` on.
  std::int64_t count_wrong(ConstTensorView tensor, std::size_t first = 0) const;
  /// The number of elements of `tensor` that differ from the input of rank `rank`, from its element
  /// `first` on.
  std::int64_t count_unlike_input(ConstTensorView tensor, int rank, std::size_t first = 0) const;

 private:
  ReduceOp op_;
  std::vector<std::byte> expected_;  // one period
};

}  // namespace elastic::bench
