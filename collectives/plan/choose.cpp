#include "collectives/plan/choose.hpp"

namespace elastic::plan {

Allreduce choose_allreduce(int size, std::size_t bytes, const Thresholds& thresholds) {
  if (size <= thresholds.direct_ranks && bytes <= thresholds.direct_bytes) {
    return Allreduce::kDirect;
  }
  if (bytes <= thresholds.doubling_bytes) return Allreduce::kRecursiveDoubling;
  return choose_large_allreduce(size, thresholds);
}

Allreduce choose_large_allreduce(int size, const Thresholds& thresholds) {
  if (size == 2 && thresholds.capacity >= 2 * thresholds.swap_segment_bytes) {
    return Allreduce::kSwap;
  }
  return size <= thresholds.pairwise_ranks ? Allreduce::kPairwise : Allreduce::kRing;
}

bool choose_tree_broadcast(int size, std::size_t bytes, const Thresholds& thresholds) {
  // Of two or three ranks the chain has no longer way to the last, and pipelines.
  return size > 2 && bytes <= thresholds.tree_broadcast_bytes;
}

}  // namespace elastic::plan
