#include "collectives/plan/allreduce.hpp"
#include "collectives/plan/builder.hpp"

namespace elastic::plan {

/// Two ranks exchange their inputs, segment by segment, and both reduce each segment. Cost: one
/// hop. A rank sends as much as in a ring of two, and reduces twice as much.
Plan two_rank_exchange(int rank, Elements elements, std::size_t segment_bytes) {
  Builder build;
  const int peer = 1 - rank;
  const Pieces pieces(0, elements.count * elements.bytes,
                      whole_elements(segment_bytes, elements.bytes));
  for (std::size_t i = 0; i < pieces.count(); ++i) {
    const Range data{Area::kData, pieces.offset(i), pieces.bytes(i)};
    const Range input{Area::kInput, data.offset, data.bytes};
    const std::int32_t sent = build.send(peer, input);
    // Rank 0's operand comes first on both sides, so that both get the same bits.
    const std::int32_t reduced = rank == 0 ? build.receive_reduce(peer, data, input, sent)
                                           : build.reduce_received(peer, data, input, sent);
    build.first_write(reduced);
    build.last_use(reduced);
    build.finish(data, reduced);
  }
  return build.take();
}

}  // namespace elastic::plan
