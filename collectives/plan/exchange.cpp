#include "collectives/plan/exchange.hpp"

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
