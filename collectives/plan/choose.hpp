#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "collectives/plan/hosts.hpp"

namespace elastic::plan {

enum class Allreduce : std::uint8_t {
  kDirect,
  kRecursiveDoubling,
  kSwap,
  kPairwise,
  kHierarchical,
  kRing,
};

/// "direct", "doubling", "swap", "pairwise", "hierarchical" or "ring".
const char* name(Allreduce algorithm);
std::optional<Allreduce> algorithm_named(std::string_view name);

/// Where one algorithm becomes faster than another. The values are those of shared memory and
/// loopback on a small machine; what is measured replaces them (`tuned`).
struct Thresholds {
  std::optional<Allreduce> algorithm =
      std::nullopt;                        ///< instead of choosing, where the ranks can do it
  int direct_ranks = 8;                    ///< direct exchange sends size-1 messages per rank
  std::size_t direct_bytes = 4 * 1024;     ///< up to here direct exchange
  std::size_t doubling_bytes = 64 * 1024;  ///< up to here recursive doubling
  std::size_t hierarchical_bytes =
      16 * 1024;             ///< for each host; or doubling_bytes, if that is less
  int pairwise_ranks = 16;   ///< of one host: up to here pairwise, then the ring
  std::size_t capacity = 0;  ///< what every link inside a host takes unread
  std::size_t swap_segment_bytes = 256 * 1024;  ///< with at least twice the capacity two ranks swap
  std::size_t tree_broadcast_bytes = 32 * 1024;  ///< up to here a tree, then the chain
};

/// Whether it reads kInput and brings up every part of the result with a kFinish.
bool is_large(Allreduce algorithm);

/// Whether ranks placed like this, with what their links take, can do it at all.
bool can_do(Allreduce algorithm, const Hosts& hosts, const Thresholds& thresholds);

/// A function of its arguments alone: every rank of a view has to choose the same.
Allreduce choose_allreduce(const Hosts& hosts, std::size_t bytes,
                           const Thresholds& thresholds = {});
/// Among the large ones.
Allreduce choose_large_allreduce(const Hosts& hosts, const Thresholds& thresholds = {});
bool choose_tree_broadcast(int size, std::size_t bytes, const Thresholds& thresholds = {});

}  // namespace elastic::plan
