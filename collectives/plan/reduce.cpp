#include "collectives/plan/reduce.hpp"

#include <vector>

#include "collectives/plan/builder.hpp"

namespace elastic::plan {
namespace {

Range whole(std::size_t bytes) {
  return {Area::kData, 0, bytes};
}

/// The same range of this rank's contribution.
Range input(const Range& data) {
  return {Area::kInput, data.offset, data.bytes};
}

/// Calls `use(range)` for each segment of the data.
template <typename Use>
void each_segment(Elements elements, std::size_t segment_bytes, const Use& use) {
  const Pieces pieces(0, elements.count * elements.bytes,
                      whole_elements(segment_bytes, elements.bytes));
  for (std::size_t i = 0; i < pieces.count(); ++i) {
    use(Range{Area::kData, pieces.offset(i), pieces.bytes(i)});
  }
}

}  // namespace

/// Places count from the root. In hop h, a rank with bit h as the lowest one of its place gives
/// what it has to the place without that bit, and is done.
Plan tree_reduce(int rank, int size, int root, std::size_t bytes) {
  Builder build;
  const Range data = whole(bytes);
  Range sum = input(data);
  const int place = around(rank, -root, size);
  std::int32_t reduced = Step::kNone;
  for (int hop = 1; hop < size; hop *= 2) {
    if ((place & hop) != 0) {
      build.send(around(rank, -hop, size), sum, reduced);
      break;
    }
    if (place + hop < size) {
      reduced = build.receive_reduce(around(rank, hop, size), data, sum, reduced);
      sum = data;
    }
  }
  return build.take();
}

/// The last rank of the chain sends its input.
Plan chain_reduce(int rank, int size, int root, Elements elements, std::size_t segment_bytes) {
  Builder build;
  const int place = around(rank, -root, size);
  each_segment(elements, segment_bytes, [&](const Range& segment) {
    Range sum = input(segment);
    std::int32_t reduced = Step::kNone;
    if (place + 1 < size) {
      reduced = build.receive_reduce(around(rank, 1, size), segment, sum);
      sum = segment;
    }
    if (place > 0) build.send(around(rank, -1, size), sum, reduced);
  });
  return build.take();
}

/// Each rank begins with the rank after it, so that no rank is the first target of several.
Plan direct_reduce_scatter(int rank, int size, Elements elements, std::size_t segment_bytes) {
  Builder build;
  const std::size_t segment = whole_elements(segment_bytes, elements.bytes);
  const auto begin = [&](int part) {
    return elements.bytes * part_begin(elements.count, static_cast<std::size_t>(size),
                                       static_cast<std::size_t>(part));
  };
  const auto pieces_of = [&](int part) {
    return Pieces(begin(part), begin(part + 1) - begin(part), segment);
  };
  const Pieces mine = pieces_of(rank);
  const auto own = [&](Area area, std::size_t i) {
    const std::size_t offset = mine.offset(i) - (area == Area::kData ? begin(rank) : 0);
    return Range{area, offset, mine.bytes(i)};
  };
  std::vector<std::int32_t> reduced(mine.count(), Step::kNone);
  for (int hop = 1; hop < size; ++hop) {
    const int target = around(rank, hop, size);
    const Pieces theirs = pieces_of(target);
    for (std::size_t i = 0; i < theirs.count(); ++i) {
      build.send(target, {Area::kInput, theirs.offset(i), theirs.bytes(i)});
    }
    for (std::size_t i = 0; i < mine.count(); ++i) {
      reduced[i] = build.receive_reduce(around(rank, -hop, size), own(Area::kData, i),
                                        own(hop == 1 ? Area::kInput : Area::kData, i), reduced[i]);
    }
  }
  for (std::size_t i = 0; size == 1 && i < mine.count(); ++i) {
    build.local(Step::Kind::kCopy, own(Area::kData, i), own(Area::kInput, i));
  }
  return build.take();
}

/// A rank sends what it has before it adds what arrives in the same hop.
Plan doubling_scan(int rank, int size, std::size_t bytes) {
  Builder build;
  const Range data = whole(bytes);
  std::int32_t last = Step::kNone;
  for (int hop = 1; hop < size; hop *= 2) {
    if (rank + hop < size) last = build.send(rank + hop, data, last);
    if (rank >= hop) last = build.reduce_received(rank - hop, data, data, last);
  }
  return build.take();
}

Plan chain_scan(int rank, int size, Elements elements, std::size_t segment_bytes) {
  Builder build;
  each_segment(elements, segment_bytes, [&](const Range& segment) {
    std::int32_t reduced = Step::kNone;
    if (rank > 0) reduced = build.reduce_received(rank - 1, segment, segment);
    if (rank + 1 < size) build.send(rank + 1, segment, reduced);
  });
  return build.take();
}

Plan shift(int rank, int size, std::size_t bytes) {
  Builder build;
  const Range data = whole(bytes);
  std::int32_t sent = Step::kNone;
  if (rank + 1 < size) sent = build.send(rank + 1, data);
  if (rank > 0) build.receive(rank - 1, data, sent);
  return build.take();
}

}  // namespace elastic::plan
