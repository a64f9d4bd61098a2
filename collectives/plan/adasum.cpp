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

Plan among(const std::vector<int>& ranks, Plan plan) {
  for (Step& step : plan.steps) {
    if (step.peer != Step::kNone) step.peer = ranks[static_cast<std::size_t>(step.peer)];
  }
  return plan;
}

}  // namespace elastic::plan
