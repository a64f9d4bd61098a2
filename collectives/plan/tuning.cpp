#include "collectives/plan/tuning.hpp"

#include <algorithm>
#include <bit>

#include "collectives/plan/allreduce.hpp"

namespace elastic::plan {
namespace {

/// A message more in the same hop costs this part of the first one's latency.
constexpr std::uint64_t kNextMessage = 4;

constexpr std::size_t kLeastBytes = 1024;
/// Whatever was measured, plans for small data are for small data: they send all of it to every
/// rank, or several times.
constexpr std::size_t kMostOneShotBytes = 32 * 1024;
constexpr std::size_t kMostDoublingBytes = 128 * 1024;
constexpr std::size_t kMostCirculantBytes = std::size_t{1} << 31;

/// With fewer hosts a ring is steadier, as a host sends to one other at a time, and was measured to
/// be as fast where lines are slow: circulant has to be faster than it by this part.
constexpr int kManyHosts = 32;
constexpr std::uint64_t kCirculantMargin = 4;

/// The latency of a segment is at most this part of its time.
constexpr std::uint64_t kLatencyPart = 64;
constexpr std::size_t kLeastSegment = 128 * 1024;
/// Where latency matters segments are as long as the options allow, by default.
constexpr std::size_t kUsualSegment = 256 * 1024;

/// Less than any link takes, and more: what was measured beyond that was something else. The
/// products below have room for it.
constexpr LinkCost kLeastCost{1, 1};
constexpr LinkCost kMostCost{std::uint64_t{1} << 36, std::uint64_t{1} << 32};

LinkCost bounded(const LinkCost& cost) {
  return {std::clamp(cost.latency_ns, kLeastCost.latency_ns, kMostCost.latency_ns),
          std::clamp(cost.ns_per_mib, kLeastCost.ns_per_mib, kMostCost.ns_per_mib)};
}

std::uint64_t hops_of_doubling(int ranks) {
  const auto n = static_cast<std::uint64_t>(ranks);
  // An int, but of the argument's type before GCC 14.
  const auto bits = static_cast<std::uint64_t>(std::bit_width(n));
  return bits - 1 + (std::has_single_bit(n) ? 0 : 2);
}

/// The time of a reduce-scatter and an allgather in one hop each.
std::uint64_t two_hops(const LinkCost& cost, std::uint64_t ranks, std::uint64_t bytes) {
  if (ranks == 1) return 0;
  return 2 * (cost.of(bytes / ranks * (ranks - 1)) + (ranks - 2) * cost.latency_ns / kNextMessage);
}

/// A ring of hosts; `bytes` go through each of its ranks. A block of several segments is sent on
/// while it arrives, so that it hides the latency.
std::uint64_t ring(const LinkCost& cost, std::uint64_t hosts, std::uint64_t bytes) {
  const std::uint64_t block = bytes / hosts;
  const std::uint64_t segment = std::min<std::uint64_t>(block, kUsualSegment);
  return 2 * (hosts - 1) * std::max(cost.of(segment), cost.of(block) - cost.latency_ns);
}

/// The same in fewer hops, with a message for each block that is not short. Each of `shares` goes
/// between other ranks.
std::uint64_t circulant(const LinkCost& cost, std::uint64_t hosts, std::uint64_t shares,
                        std::uint64_t bytes) {
  const auto hops = static_cast<std::uint64_t>(std::bit_width(hosts - 1));
  const std::uint64_t block = bytes / hosts;
  const std::uint64_t further = block < kShortBlock ? 0 : hosts - 1 - hops;
  return 2 * ((hosts - 1) * (cost.of(block / shares) - cost.latency_ns) +
              (hops + further / kNextMessage) * cost.latency_ns);
}

/// Up to which power of two `first` takes less time than `second`; `least` if for none.
template <typename First, typename Second>
std::size_t crossing(const First& first, const Second& second, std::size_t least,
                     std::size_t most) {
  std::size_t bytes = least;
  while (bytes < most && first(2 * bytes) < second(2 * bytes)) bytes *= 2;
  return bytes;
}

}  // namespace

std::uint64_t estimate(AllreduceAlgorithm algorithm, const Hosts& hosts, const LinkCosts& costs,
                       std::size_t bytes) {
  if (hosts.size() < 2) return 0;
  const LinkCost inside = bounded(costs.inside);
  const LinkCost between = bounded(costs.between);
  const LinkCost& slowest = hosts.count() > 1 ? between : inside;
  const auto ranks = static_cast<std::uint64_t>(hosts.size());
  const auto places = static_cast<std::uint64_t>(hosts.count());
  switch (algorithm) {
    case AllreduceAlgorithm::kOneShot:
      return slowest.of(bytes * (ranks - 1)) + (ranks - 2) * slowest.latency_ns / kNextMessage;
    case AllreduceAlgorithm::kDoubling: {
      // Ranks of a host are next to each other more often than not.
      const std::uint64_t hops = hops_of_doubling(hosts.size());
      const std::uint64_t far = places > 1 ? std::min(hops_of_doubling(hosts.count()), hops) : 0;
      return far * between.of(bytes) + (hops - far) * inside.of(bytes);
    }
    case AllreduceAlgorithm::kTwoRankExchange:
      return slowest.of(bytes);
    case AllreduceAlgorithm::kTwoShot:
      return two_hops(slowest, ranks, bytes);
    case AllreduceAlgorithm::kHierarchical: {
      const auto local = static_cast<std::uint64_t>(hosts.most_ranks());
      return two_hops(inside, local, bytes) + ring(between, places, bytes / local);
    }
    case AllreduceAlgorithm::kCirculant: {
      const auto local = static_cast<std::uint64_t>(hosts.most_ranks());
      return two_hops(inside, local, bytes) + circulant(between, places, local, bytes);
    }
    case AllreduceAlgorithm::kRing:
      break;
  }
  return ring(slowest, ranks, bytes);
}

Thresholds tuned(const Hosts& hosts, const LinkCosts& costs, Thresholds given) {
  const auto time = [&](AllreduceAlgorithm algorithm) {
    return [&hosts, &costs, algorithm](std::size_t bytes) {
      return estimate(algorithm, hosts, costs, bytes);
    };
  };
  if (hosts.count() >= kLeastCirculantHosts) {
    const auto largest = choose_large_allreduce(hosts, kMostCirculantBytes + 1, given);
    const auto circulant = [&](std::size_t bytes) {
      const std::uint64_t its = estimate(AllreduceAlgorithm::kCirculant, hosts, costs, bytes);
      return hosts.count() < kManyHosts ? its + its / kCirculantMargin : its;
    };
    given.circulant_bytes = crossing(circulant, time(largest), kLeastBytes, kMostCirculantBytes);
  }
  const auto large = [&](std::size_t bytes) {
    return estimate(choose_large_allreduce(hosts, bytes, given), hosts, costs, bytes);
  };
  const auto doubling = time(AllreduceAlgorithm::kDoubling);
  // Between two ranks there is no difference: one hop.
  if (hosts.size() > 2) {
    given.one_shot_bytes =
        crossing(time(AllreduceAlgorithm::kOneShot), doubling, kLeastBytes, kMostOneShotBytes);
    given.doubling_bytes = crossing(doubling, large, given.one_shot_bytes, kMostDoublingBytes);
    given.hierarchical_bytes =
        given.doubling_bytes / static_cast<std::size_t>(std::max(hosts.count(), 1));
  }
  return given;
}

std::size_t tuned_segment(const Hosts& hosts, const LinkCosts& costs, std::size_t most) {
  const LinkCost cost = bounded(hosts.count() > 1 ? costs.between : costs.inside);
  const std::uint64_t bytes = cost.latency_ns * kLatencyPart * kMib / cost.ns_per_mib;
  const auto longest = static_cast<std::uint64_t>(std::max(most, kLeastSegment));
  const std::uint64_t segment = std::bit_ceil(std::min<std::uint64_t>(bytes, longest));
  return std::min(std::max(static_cast<std::size_t>(segment), kLeastSegment), most);
}

}  // namespace elastic::plan
