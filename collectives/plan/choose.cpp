#include "collectives/plan/choose.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace elastic::plan {
namespace {

constexpr std::array<std::pair<AllreduceAlgorithm, const char*>, 7> kNames = {{
    {AllreduceAlgorithm::kOneShot, "one_shot"},
    {AllreduceAlgorithm::kDoubling, "doubling"},
    {AllreduceAlgorithm::kTwoRankExchange, "two_rank_exchange"},
    {AllreduceAlgorithm::kTwoShot, "two_shot"},
    {AllreduceAlgorithm::kHierarchical, "hierarchical"},
    {AllreduceAlgorithm::kRing, "ring"},
    {AllreduceAlgorithm::kCirculant, "circulant"},
}};

/// Whether hosts are there to share work inside of, over shared memory.
bool has_hierarchy(const Hosts& hosts, const Thresholds& thresholds) {
  return hosts.count() > 1 && hosts.most_ranks() > 1 && thresholds.capacity > 0;
}

/// Not where ranks of a host have nothing but the network to share work through.
bool can_circulate(const Hosts& hosts, const Thresholds& thresholds) {
  return hosts.count() > 1 && (hosts.most_ranks() == 1 || thresholds.capacity > 0);
}

bool can_exchange(const Hosts& hosts, const Thresholds& thresholds) {
  return hosts.count() == 1 && hosts.size() == 2 &&
         thresholds.capacity >= 2 * thresholds.exchange_segment_bytes;
}

/// The algorithm that is asked for, if it can be used.
std::optional<AllreduceAlgorithm> wanted(const Hosts& hosts, const Thresholds& thresholds) {
  const auto& algorithm = thresholds.algorithm;
  return algorithm && can_do(*algorithm, hosts, thresholds) ? algorithm : std::nullopt;
}

}  // namespace

const char* name(AllreduceAlgorithm algorithm) {
  return std::find_if(kNames.begin(), kNames.end(),
                      [&](const auto& one) { return one.first == algorithm; })
      ->second;
}

std::optional<AllreduceAlgorithm> algorithm_named(std::string_view name) {
  const auto found = std::find_if(kNames.begin(), kNames.end(),
                                  [&](const auto& one) { return one.second == name; });
  return found == kNames.end() ? std::nullopt : std::optional(found->first);
}

std::string algorithm_names() {
  std::string names;
  for (const auto& one : kNames) names += (names.empty() ? "" : ", ") + std::string(one.second);
  return names;
}

bool is_large(AllreduceAlgorithm algorithm) {
  return algorithm != AllreduceAlgorithm::kOneShot && algorithm != AllreduceAlgorithm::kDoubling;
}

bool can_do(AllreduceAlgorithm algorithm, const Hosts& hosts, const Thresholds& thresholds) {
  if (algorithm == AllreduceAlgorithm::kTwoRankExchange) return can_exchange(hosts, thresholds);
  if (algorithm == AllreduceAlgorithm::kCirculant) return can_circulate(hosts, thresholds);
  if (algorithm == AllreduceAlgorithm::kHierarchical) return has_hierarchy(hosts, thresholds);
  return true;
}

AllreduceAlgorithm choose_allreduce(const Hosts& hosts, std::size_t bytes,
                                    const Thresholds& thresholds) {
  if (const auto asked = wanted(hosts, thresholds)) return *asked;
  if (hosts.size() <= thresholds.one_shot_ranks && bytes <= thresholds.one_shot_bytes) {
    return AllreduceAlgorithm::kOneShot;
  }
  const bool hierarchy =
      has_hierarchy(hosts, thresholds) &&
      bytes / static_cast<std::size_t>(hosts.count()) > thresholds.hierarchical_bytes;
  if (bytes <= thresholds.doubling_bytes && !hierarchy) return AllreduceAlgorithm::kDoubling;
  return choose_large_allreduce(hosts, bytes, thresholds);
}

AllreduceAlgorithm choose_large_allreduce(const Hosts& hosts, std::size_t bytes,
                                          const Thresholds& thresholds) {
  const auto asked = wanted(hosts, thresholds);
  if (asked && is_large(*asked)) return *asked;
  if (can_exchange(hosts, thresholds)) return AllreduceAlgorithm::kTwoRankExchange;
  const bool one_host = hosts.count() == 1;
  if (hosts.size() <= (one_host ? thresholds.two_shot_ranks : 2))
    return AllreduceAlgorithm::kTwoShot;
  if (bytes <= thresholds.circulant_bytes && can_circulate(hosts, thresholds)) {
    return AllreduceAlgorithm::kCirculant;
  }
  return has_hierarchy(hosts, thresholds) ? AllreduceAlgorithm::kHierarchical
                                          : AllreduceAlgorithm::kRing;
}

bool choose_tree_broadcast(int size, std::size_t bytes, const Thresholds& thresholds) {
  // With two or three ranks the chain is no longer than the tree, and pipelines.
  return size > 2 && bytes <= thresholds.tree_broadcast_bytes;
}

}  // namespace elastic::plan
