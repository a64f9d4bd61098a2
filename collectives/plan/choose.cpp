#include "collectives/plan/choose.hpp"

namespace elastic::plan {

Allreduce choose_allreduce(int size, std::size_t bytes, const Thresholds& thresholds) {
  if (size <= thresholds.direct_ranks && bytes <= thresholds.direct_bytes) {
    return Allreduce::kDirect;
  }
  return bytes <= thresholds.doubling_bytes ? Allreduce::kRecursiveDoubling : Allreduce::kRing;
}

bool choose_tree_broadcast(int size, std::size_t bytes, const Thresholds& thresholds) {
  // Of two or three ranks the chain has no longer way to the last, and pipelines.
  return size > 2 && bytes <= thresholds.tree_broadcast_bytes;
}

}  // namespace elastic::plan
