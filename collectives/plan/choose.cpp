#include "collectives/plan/choose.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace elastic::plan {
namespace {

constexpr std::array<std::pair<Allreduce, const char*>, 6> kNames = {{
    {Allreduce::kOneShot, "one_shot"},
    {Allreduce::kRecursiveDoubling, "doubling"},
    {Allreduce::kTwoRankExchange, "two_rank_exchange"},
    {Allreduce::kTwoShot, "two_shot"},
    {Allreduce::kHierarchical, "hierarchical"},
    {Allreduce::kRing, "ring"},
}};

/// Whether hosts are there to share work inside of, over shared memory.
bool has_hierarchy(const Hosts& hosts, const Thresholds& thresholds) {
  return hosts.count() > 1 && hosts.most_ranks() > 1 && thresholds.capacity > 0;
}

bool can_exchange(const Hosts& hosts, const Thresholds& thresholds) {
  return hosts.count() == 1 && hosts.size() == 2 &&
         thresholds.capacity >= 2 * thresholds.exchange_segment_bytes;
}

/// The algorithm that is asked for, if it can be used.
std::optional<Allreduce> wanted(const Hosts& hosts, const Thresholds& thresholds) {
  const auto& algorithm = thresholds.algorithm;
  return algorithm && can_do(*algorithm, hosts, thresholds) ? algorithm : std::nullopt;
}

}  // namespace

const char* name(Allreduce algorithm) {
  return std::find_if(kNames.begin(), kNames.end(),
                      [&](const auto& one) { return one.first == algorithm; })
      ->second;
}

std::optional<Allreduce> algorithm_named(std::string_view name) {
  const auto found = std::find_if(kNames.begin(), kNames.end(),
                                  [&](const auto& one) { return one.second == name; });
  return found == kNames.end() ? std::nullopt : std::optional(found->first);
}

bool is_large(Allreduce algorithm) {
  return algorithm != Allreduce::kOneShot && algorithm != Allreduce::kRecursiveDoubling;
}

bool can_do(Allreduce algorithm, const Hosts& hosts, const Thresholds& thresholds) {
  if (algorithm == Allreduce::kTwoRankExchange) return can_exchange(hosts, thresholds);
  if (algorithm == Allreduce::kHierarchical) return has_hierarchy(hosts, thresholds);
  return true;
}

Allreduce choose_allreduce(const Hosts& hosts, std::size_t bytes, const Thresholds& thresholds) {
  if (const auto asked = wanted(hosts, thresholds)) return *asked;
  if (hosts.size() <= thresholds.one_shot_ranks && bytes <= thresholds.one_shot_bytes) {
    return Allreduce::kOneShot;
  }
  const bool hierarchy =
      has_hierarchy(hosts, thresholds) &&
      bytes / static_cast<std::size_t>(hosts.count()) > thresholds.hierarchical_bytes;
  if (bytes <= thresholds.doubling_bytes && !hierarchy) return Allreduce::kRecursiveDoubling;
  return choose_large_allreduce(hosts, thresholds);
}

Allreduce choose_large_allreduce(const Hosts& hosts, const Thresholds& thresholds) {
  const auto asked = wanted(hosts, thresholds);
  if (asked && is_large(*asked)) return *asked;
  if (can_exchange(hosts, thresholds)) return Allreduce::kTwoRankExchange;
  const bool one_host = hosts.count() == 1;
  if (hosts.size() <= (one_host ? thresholds.two_shot_ranks : 2)) return Allreduce::kTwoShot;
  return has_hierarchy(hosts, thresholds) ? Allreduce::kHierarchical : Allreduce::kRing;
}

bool choose_tree_broadcast(int size, std::size_t bytes, const Thresholds& thresholds) {
  // With two or three ranks the chain is no longer than the tree, and pipelines.
  return size > 2 && bytes <= thresholds.tree_broadcast_bytes;
}

}  // namespace elastic::plan
