#include "collectives/plan/adasum.hpp"

#include <algorithm>
#include <bit>

namespace elastic::plan {
namespace {

/// Sections begin at such multiples, so that no element is cut.
constexpr std::size_t kAlignment = 64;

std::size_t middle_of(const Range& range) {
  const std::size_t half = (range.bytes / 2 + kAlignment - 1) / kAlignment * kAlignment;
  return std::min(half, range.bytes);
}

int fewest_ranks(const Hosts& hosts) {
  std::size_t fewest = hosts.ranks(0).size();
  for (int host = 1; host < hosts.count(); ++host) {
    fewest = std::min(fewest, hosts.ranks(host).size());
  }
  return static_cast<int>(fewest);
}

/// The ranks that have a share of the vector of one of these hosts.
std::vector<int> owners_on(const std::vector<int>& of_hosts, const Hosts& hosts, int owners) {
  std::vector<int> ranks;
  for (const int host : of_hosts) {
    const auto first = hosts.ranks(host).begin();
    ranks.insert(ranks.end(), first, first + owners);
  }
  std::ranges::sort(ranks);
  return ranks;
}

}  // namespace

Adasum adasum(int rank, int size, std::size_t bytes) {
  const int left = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
  const int pairs = size - left;
  Adasum made;
  if (rank < 2 * pairs) {
    if (rank % 2 == 1) {
      made.proxy = rank - 1;
      return made;
    }
    made.surplus = rank + 1;
    made.fold_ranks = {rank};
  }
  const auto rank_at = [pairs](int place) { return place < pairs ? 2 * place : place + pairs; };
  const int place = rank < 2 * pairs ? rank / 2 : rank - pairs;
  Range part{Area::kData, 0, bytes};
  for (int distance = 1; distance < left; distance *= 2) {
    AdasumLevel& level = made.levels.emplace_back();
    level.peer = rank_at(place ^ distance);
    level.is_lower = (place & distance) == 0;
    const std::size_t middle = middle_of(part);
    const Range lower{Area::kData, part.offset, middle};
    const Range upper{Area::kData, part.offset + middle, part.bytes - middle};
    level.kept = level.is_lower ? lower : upper;
    level.given = level.is_lower ? upper : lower;
    part = level.kept;
    const int first = place / (2 * distance) * (2 * distance);
    for (int each = first; each < first + 2 * distance; ++each) {
      level.ranks.push_back(rank_at(each));
    }
  }
  return made;
}

Range HierarchicalAdasum::share_of(int owner) const {
  const auto number = static_cast<std::size_t>(owners);
  const std::size_t least = (bytes + number - 1) / number;
  const std::size_t each = (least + kAlignment - 1) / kAlignment * kAlignment;
  const std::size_t begin = std::min(bytes, each * static_cast<std::size_t>(owner));
  return {Area::kData, begin, std::min(each, bytes - begin)};
}

HierarchicalAdasum hierarchical_adasum(int rank, const Hosts& hosts, std::size_t bytes,
                                       std::size_t least_share) {
  const int home = hosts.of(rank);
  HierarchicalAdasum made;
  made.host_ranks = hosts.ranks(home);
  made.place =
      static_cast<int>(std::ranges::lower_bound(made.host_ranks, rank) - made.host_ranks.begin());
  const std::size_t most = std::max<std::size_t>(bytes / least_share, 1);
  made.owners = static_cast<int>(std::min(most, static_cast<std::size_t>(fewest_ranks(hosts))));
  made.bytes = bytes;
  if (!made.is_owner(made.place)) return made;
  const Range share = made.share_of(made.place);
  Adasum& between = made.between.emplace(adasum(home, hosts.count(), share.bytes));
  const auto owner_on = [&](int host) {
    return hosts.ranks(host)[static_cast<std::size_t>(made.place)];
  };
  if (between.surplus) between.surplus = owner_on(*between.surplus);
  if (between.proxy) between.proxy = owner_on(*between.proxy);
  between.fold_ranks = owners_on(between.fold_ranks, hosts, made.owners);
  for (AdasumLevel& level : between.levels) {
    level.peer = owner_on(level.peer);
    level.kept.offset += share.offset;
    level.given.offset += share.offset;
    level.ranks = owners_on(level.ranks, hosts, made.owners);
  }
  return made;
}

Plan among(const std::vector<int>& ranks, Plan plan) {
  for (Step& step : plan.steps) {
    if (step.peer != Step::kNone) step.peer = ranks[static_cast<std::size_t>(step.peer)];
  }
  return plan;
}

}  // namespace elastic::plan
