#include <cstdint>

#include "collectives/plan/allreduce.hpp"
#include "collectives/plan/builder.hpp"

namespace elastic::plan {
namespace {

/// A direct reduce-scatter and a direct allgather, segment by segment. A segment has a part for
/// every rank.
///
/// 1. Contribute: every rank sends every other rank that rank's part of its input.
/// 2. Reduce: every rank adds all inputs of its own part.
/// 3. Share: every rank sends the result of its part to all other ranks.
///
/// Cost: each rank sends 2 (size - 1) / size of the data, as in the ring, in 2 hops instead of
/// 2 (size - 1).
///
/// No receive waits for a send: what takes the place of a part of kInput was reduced by a rank that
/// had received this part before.
class TwoShot {
 public:
  TwoShot(int rank, int size, Elements elements, std::size_t segment_bytes)
      : rank_(rank),
        size_(size),
        element_(elements.bytes),
        segments_(0, elements.count * elements.bytes,
                  whole_elements(segment_bytes, elements.bytes) * static_cast<std::size_t>(size)) {}

  /// The parts of a segment are on their way while those of the segment before are reduced.
  Plan make() {
    contribute(0);
    std::int32_t reduced = reduce(0);
    for (std::size_t i = 1; i < segments_.count(); ++i) {
      contribute(i);
      const std::int32_t reduced_next = reduce(i);
      share(i - 1, reduced);
      reduced = reduced_next;
    }
    share(segments_.count() - 1, reduced);
    return build_.take();
  }

 private:
  Range part(Area area, std::size_t segment, int of) const {
    const std::size_t elements = segments_.bytes(segment) / element_;
    const auto parts = static_cast<std::size_t>(size_);
    const auto index = static_cast<std::size_t>(of);
    const std::size_t begin = part_begin(elements, parts, index) * element_;
    const std::size_t end = part_begin(elements, parts, index + 1) * element_;
    return {area, segments_.offset(segment) + begin, end - begin};
  }
  void contribute(std::size_t segment) {
    for (int hop = 1; hop < size_; ++hop) {
      const int peer = around(rank_, hop, size_);
      build_.send(peer, part(Area::kInput, segment, peer));
    }
  }
  /// Always in the same order, whichever rank comes first: the same bits in every run. Returns the
  /// step after which this rank's part is final.
  std::int32_t reduce(std::size_t segment) {
    const Range into = part(Area::kData, segment, rank_);
    std::int32_t reduced = Step::kNone;
    for (int hop = 1; hop < size_; ++hop) {
      const Range left = hop == 1 ? part(Area::kInput, segment, rank_) : into;
      reduced = build_.receive_reduce(around(rank_, -hop, size_), into, left, reduced);
      if (hop == 1) build_.first_write(reduced);
    }
    return build_.finish(into, reduced);
  }
  void share(std::size_t segment, std::int32_t reduced) {
    for (int hop = 1; hop < size_; ++hop) {
      build_.send(around(rank_, hop, size_), part(Area::kData, segment, rank_), reduced);
    }
    for (int hop = 1; hop < size_; ++hop) {
      const int peer = around(rank_, -hop, size_);
      const std::int32_t received = build_.receive(peer, part(Area::kData, segment, peer));
      build_.first_write(received);
      build_.last_use(received);
    }
  }

  int rank_;
  int size_;
  std::size_t element_;
  Pieces segments_;
  Builder build_;
};

}  // namespace

Plan two_shot_allreduce(int rank, int size, Elements elements, std::size_t segment_bytes) {
  if (size == 1) return {};
  return TwoShot(rank, size, elements, segment_bytes).make();
}

}  // namespace elastic::plan
