#pragma once

#include <cstddef>
#include <cstdint>

namespace elastic::plan {

enum class Allreduce : std::uint8_t { kDirect, kRecursiveDoubling, kSwap, kPairwise, kRing };

/// Where one algorithm becomes faster than another. The values are those of shared memory and
/// loopback on a small machine; measured ones may replace them.
struct Thresholds {
  int direct_ranks = 8;                         ///< direct exchange sends size-1 messages per rank
  std::size_t direct_bytes = 4 * 1024;          ///< up to here direct exchange
  std::size_t doubling_bytes = 64 * 1024;       ///< up to here recursive doubling
  int pairwise_ranks = 2;                       ///< beyond it, up to here pairwise, then the ring
  std::size_t capacity = 0;                     ///< what every link takes unread
  std::size_t swap_segment_bytes = 128 * 1024;  ///< with at least twice the capacity two ranks swap
  std::size_t tree_broadcast_bytes = 32 * 1024;  ///< up to here a tree, then the chain
};

/// A function of its arguments alone: every rank of a view has to choose the same.
Allreduce choose_allreduce(int size, std::size_t bytes, const Thresholds& thresholds = {});
/// Among those that read kInput and bring up every part of the result with a kFinish.
Allreduce choose_large_allreduce(int size, const Thresholds& thresholds = {});
bool choose_tree_broadcast(int size, std::size_t bytes, const Thresholds& thresholds = {});

}  // namespace elastic::plan
