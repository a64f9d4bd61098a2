#include "collectives/plan/exchange.hpp"

#include <algorithm>

#include "collectives/plan/builder.hpp"
#include "collectives/plan/parts.hpp"

namespace elastic::plan {

Plan one_shot_allgather(int rank, int size, std::size_t bytes) {
  Builder build;
  const auto block = [bytes](int of) {
    return Range{Area::kData, static_cast<std::size_t>(of) * bytes, bytes};
  };
  for (int hop = 1; hop < size; ++hop) build.send(around(rank, hop, size), block(rank));
  for (int hop = 1; hop < size; ++hop) {
    const int peer = around(rank, -hop, size);
    build.receive(peer, block(peer));
  }
  return build.take();
}

Plan dissemination_allgather(int rank, int size, std::size_t bytes) {
  Builder build;
  // A run of blocks that begins with that of rank `first`, in its one or two parts.
  const auto each_part = [&](int first, int count, const auto& use) {
    const int before_end = std::min(count, size - first);
    const auto range = [bytes](int from, int blocks) {
      return Range{Area::kData, static_cast<std::size_t>(from) * bytes,
                   static_cast<std::size_t>(blocks) * bytes};
    };
    use(range(first, before_end));
    if (count > before_end) use(range(0, count - before_end));
  };
  std::int32_t heard = Step::kNone;
  for (int have = 1; have < size; have *= 2) {
    const int more = std::min(have, size - have);
    each_part(rank, more,
              [&](const Range& blocks) { build.send(around(rank, -have, size), blocks, heard); });
    // By way of the receive before, the next hop waits for all earlier ones.
    const int from = around(rank, have, size);
    each_part(from, more, [&](const Range& blocks) { heard = build.receive(from, blocks, heard); });
  }
  return build.take();
}

Plan transfer(int rank, const std::vector<int>& donors, const std::vector<int>& receivers,
              std::size_t bytes, std::size_t segment_bytes) {
  Builder build;
  if (donors.empty()) return build.take();
  const bool receives = std::find(receivers.begin(), receivers.end(), rank) != receivers.end();
  const Pieces pieces(0, bytes, segment_bytes);
  for (std::size_t i = 0; i < pieces.count(); ++i) {
    const Range segment{Area::kData, pieces.offset(i), pieces.bytes(i)};
    const int donor = donors[i % donors.size()];
    if (receives) build.receive(donor, segment);
    if (donor != rank) continue;
    for (const int receiver : receivers) build.send(receiver, segment);
  }
  return build.take();
}

}  // namespace elastic::plan
