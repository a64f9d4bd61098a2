#pragma once

#include <cstdint>
#include <span>

#include "elastic/contributors.hpp"
#include "elastic/export.hpp"
#include "elastic/grouped_allreduce.hpp"
#include "elastic/types.hpp"

namespace elastic {

/// The contributors and samples of an `average_by_samples`.
struct SampleAverage {
  Contributors contributors;
  std::uint64_t samples = 0;  ///< of all contributors together
};

/// Averages gradients over samples, for workers with unequal batches: `sums` hold this
/// worker's sums of gradients over `samples` samples, and afterwards, on all workers alike, the sum
/// over all of them divided by the true number of samples, that of the contributors.
/// (ReduceOp::kAverage divides by workers, and so gives a sample in a small batch more weight.)
///
/// A worker that has used up its data goes on calling with zeros and 0 samples, until
/// SampleAverage::samples is 0: then no worker has any left, which all learn in the same call, and
/// the tensors are zero. So workers with unequal amounts of data end an epoch together.
///
/// Sums and count are one unit, as in Context::grouped_allreduce. Throws what that throws, and
/// Error(kInvalidArgument) where a tensor has whole numbers or is not in host memory.
ELASTIC_API SampleAverage average_by_samples(const GroupedAllreduce& allreduce,
                                             std::span<const TensorView> sums,
                                             std::uint64_t samples);
inline SampleAverage average_by_samples(Context& context, std::span<const TensorView> sums,
                                        std::uint64_t samples) {
  return average_by_samples(grouped_allreduce_of(context), sums, samples);
}

}  // namespace elastic
