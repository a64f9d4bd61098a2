#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "collectives/plan/hosts.hpp"

namespace elastic::plan {

/// The algorithms of an allreduce; allreduce.hpp describes them.
enum class AllreduceAlgorithm : std::uint8_t {
  kOneShot,
  kDoubling,
  kTwoRankExchange,
  kTwoShot,
  kHierarchical,
  kRing,
  kCirculant,
};

/// "one_shot", "doubling", "two_rank_exchange", "two_shot", "hierarchical", "ring" or "circulant".
const char* name(AllreduceAlgorithm algorithm);
std::optional<AllreduceAlgorithm> algorithm_named(std::string_view name);
/// All names, separated by commas.
std::string algorithm_names();

/// With fewer hosts circulant has no fewer hops than a ring, or hardly.
inline constexpr int kLeastCirculantHosts = 4;

/// Where one algorithm becomes faster than another. The values are those of shared memory and
/// loopback on a small machine; what is measured replaces them (`tuned`).
struct Thresholds {
  std::optional<AllreduceAlgorithm> algorithm =
      std::nullopt;                        ///< instead of choosing, where the ranks can do it
  int one_shot_ranks = 8;                  ///< one-shot sends size - 1 messages per rank
  std::size_t one_shot_bytes = 4 * 1024;   ///< up to here one-shot
  std::size_t doubling_bytes = 64 * 1024;  ///< up to here recursive doubling
  std::size_t hierarchical_bytes =
      16 * 1024;                    ///< for each host; or doubling_bytes, if that is less
  std::size_t circulant_bytes = 0;  ///< of several hosts: up to here circulant rather than a ring
  int two_shot_ranks = 16;          ///< of one host: up to here two-shot, then the ring
  std::size_t capacity = 0;         ///< bytes that every link inside a host takes unread
  /// For the two-rank exchange, which needs at least twice this capacity.
  std::size_t exchange_segment_bytes = 256 * 1024;
  std::size_t tree_broadcast_bytes = 32 * 1024;  ///< up to here a tree, then the chain
};

/// Whether the algorithm is for large tensors: it reads kInput, and ends every part of the result
/// with a kFinish.
bool is_large(AllreduceAlgorithm algorithm);

/// Whether the ranks can run the algorithm, with their hosts and the capacity of their links.
bool can_do(AllreduceAlgorithm algorithm, const Hosts& hosts, const Thresholds& thresholds);

/// A function of its arguments alone: every rank of a view has to choose the same.
AllreduceAlgorithm choose_allreduce(const Hosts& hosts, std::size_t bytes,
                                    const Thresholds& thresholds = {});
/// Chooses among the algorithms for large tensors.
AllreduceAlgorithm choose_large_allreduce(const Hosts& hosts, std::size_t bytes,
                                          const Thresholds& thresholds = {});
bool choose_tree_broadcast(int size, std::size_t bytes, const Thresholds& thresholds = {});

}  // namespace elastic::plan
