#include "training/ranges.hpp"

#include <algorithm>

namespace elastic::training {

std::uint64_t count(const Ranges& ranges) {
  std::uint64_t total = 0;
  for (const Sampler::Range& range : ranges) total += range.end - range.begin;
  return total;
}

Ranges take_front(Ranges& ranges, std::uint64_t wanted) {
  Ranges taken;
  auto range = ranges.begin();
  while (range != ranges.end() && wanted > 0) {
    const std::uint64_t part = std::min(wanted, range->end - range->begin);
    taken.push_back({range->begin, range->begin + part});
    range->begin += part;
    wanted -= part;
    if (range->begin == range->end) ++range;
  }
  ranges.erase(ranges.begin(), range);
  return taken;
}

void normalise(Ranges& ranges) {
  std::erase_if(ranges, [](const Sampler::Range& range) { return range.begin == range.end; });
  std::sort(ranges.begin(), ranges.end(),
            [](const Sampler::Range& a, const Sampler::Range& b) { return a.begin < b.begin; });
  Ranges joined;
  for (const Sampler::Range& range : ranges) {
    if (!joined.empty() && joined.back().end == range.begin) {
      joined.back().end = range.end;
    } else {
      joined.push_back(range);
    }
  }
  ranges = std::move(joined);
}

}  // namespace elastic::training
