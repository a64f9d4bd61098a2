#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "collectives/kernels/copy.hpp"
#include "collectives/kernels/reduce.hpp"
#include "collectives/kernels/store.hpp"
#include "elastic/types.hpp"

namespace elastic::bench {

/// The reduction of all ranks' elements, by the library's own loops.
class Reduction {
 public:
  Reduction(DType dtype, ReduceOp op, int ranks)
      : dtype_(dtype),
        divisor_(op == ReduceOp::kAverage ? static_cast<std::uint32_t>(ranks) : 1),
        cached_(kernels::reduce(dtype, op)),
        streaming_(kernels::reduce(dtype, op, kernels::Store::kNonTemporal)) {}

  std::size_t element() const { return size_of(dtype_); }

  /// `into` = `left` op `right`; see kernels::Function.
  void combine(std::byte* into, const std::byte* left, const std::byte* right,
               std::size_t bytes) const {
    cached_(into, left, right, bytes / element());
  }
  /// The same for the last operand: divides an average, and stores the result as `store` says.
  void conclude(std::byte* into, const std::byte* left, const std::byte* right, std::size_t bytes,
                kernels::Store store) const {
    const bool streams = store == kernels::Store::kNonTemporal && divisor_ == 1;
    (streams ? streaming_ : cached_)(into, left, right, bytes / element());
    if (divisor_ > 1) kernels::divide(dtype_, into, bytes / element(), divisor_);
  }

 private:
  DType dtype_;
  std::uint32_t divisor_;
  kernels::Function cached_;
  kernels::Function streaming_;
};

/// The kind of stores for a result: non-temporal if it is large and out of place.
inline kernels::Store result_store(const std::byte* input, const std::byte* output,
                                   std::size_t bytes) {
  const bool streams = input != output && bytes >= kernels::kBeyondCacheBytes;
  return streams ? kernels::Store::kNonTemporal : kernels::Store::kTemporal;
}

}  // namespace elastic::bench
