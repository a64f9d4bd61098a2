#include "collectives/plan/broadcast.hpp"

#include <bit>

#include "collectives/plan/builder.hpp"
#include "collectives/plan/parts.hpp"

namespace elastic::plan {

Plan tree_broadcast(int rank, int size, int root, std::size_t bytes) {
  Builder build;
  const Range data{Area::kData, 0, bytes};
  const int place = around(rank, -root, size);
  // The lowest bit set in its place tells when a rank gets the data, and from which rank.
  int span = place & -place;
  std::int32_t whole = Step::kNone;
  if (place == 0) {
    span = static_cast<int>(std::bit_ceil(static_cast<unsigned>(size)));
  } else {
    whole = build.receive(around(rank, -span, size), data);
  }
  for (int hop = span / 2; hop > 0; hop /= 2) {
    if (place + hop < size) build.send(around(rank, hop, size), data, whole);
  }
  return build.take();
}

Plan chain_broadcast(int rank, int size, int root, std::size_t bytes, std::size_t segment_bytes) {
  Builder build;
  const Pieces pieces(0, bytes, segment_bytes);
  const int place = around(rank, -root, size);
  for (std::size_t i = 0; i < pieces.count(); ++i) {
    const Range segment{Area::kData, pieces.offset(i), pieces.bytes(i)};
    std::int32_t whole = Step::kNone;
    if (place > 0) whole = build.receive(around(rank, -1, size), segment);
    if (place + 1 < size) build.send(around(rank, 1, size), segment, whole);
  }
  return build.take();
}

}  // namespace elastic::plan
