#include "collectives/plan/allreduce_way.hpp"

namespace elastic::plan {

/// A demanded algorithm for small data cannot work in place, so its tensors are packed. Two ranks
/// with eager messages are on one host, where the barrier of a zero-copy call costs least.
AllreduceLimits limits_for(int ranks, std::optional<std::size_t> most_eager_bytes,
                           std::optional<AllreduceAlgorithm> algorithm) {
  constexpr std::size_t kTwoOnAHost = std::size_t{64} << 10;
  constexpr std::size_t kOthers = std::size_t{128} << 10;
  AllreduceLimits limits;
  if (most_eager_bytes) limits.eager_below = *most_eager_bytes + 1;
  if (!algorithm || is_large(*algorithm)) {
    limits.zero_copy_from = ranks == 2 && most_eager_bytes ? kTwoOnAHost : kOthers;
  }
  return limits;
}

}  // namespace elastic::plan
