#include <cstdint>
#include <utility>
#include <vector>

#include "collectives/plan/allreduce.hpp"
#include "collectives/plan/builder.hpp"

namespace elastic::plan {
namespace {

Range at(Area area, Range place) {
  return {area, place.offset, place.bytes};
}

/// Two ranks. A segment is received when it was sent: by then it is in the cache, and may be
/// overwritten.
Plan swap(int rank, Elements elements, std::size_t segment_bytes) {
  Builder build;
  const int peer = 1 - rank;
  const auto combine =
      rank == 0 ? Step::Kind::kReceiveReduce : Step::Kind::kReceiveReduceFlipped;
  const Pieces pieces(0, elements.count * elements.bytes,
                      whole_elements(segment_bytes, elements.bytes));
  for (std::size_t i = 0; i < pieces.count(); ++i) {
    const Range data{Area::kData, pieces.offset(i), pieces.bytes(i)};
    const Range input = at(Area::kInput, data);
    const std::int32_t sent = build.send(peer, input);
    const std::int32_t reduced = build.receive_reduce(peer, data, input, sent, combine);
    build.first_write(reduced);
    build.finish(data, reduced);
  }
  return build.take();
}

/// Three ranks or more. A segment has a part for each rank.
class Pairwise {
 public:
  Pairwise(int rank, int size, Elements elements, std::size_t segment_bytes)
      : rank_(rank),
        size_(size),
        element_(elements.bytes),
        segments_(0, elements.count * elements.bytes,
                  whole_elements(segment_bytes, elements.bytes) * static_cast<std::size_t>(size)) {
  }

  /// Of each segment the parts are on their way while those of the segment before are reduced.
  Plan make() {
    std::vector<std::int32_t> sent = contribute(0);
    std::int32_t reduced = reduce(0);
    for (std::size_t i = 1; i < segments_.count(); ++i) {
      std::vector<std::int32_t> sent_next = contribute(i);
      const std::int32_t reduced_next = reduce(i);
      share(i - 1, reduced, sent);
      sent = std::move(sent_next);
      reduced = reduced_next;
    }
    share(segments_.count() - 1, reduced, sent);
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
  /// Returns, per rank, the step that sends it this rank's input.
  std::vector<std::int32_t> contribute(std::size_t segment) {
    std::vector<std::int32_t> sent(static_cast<std::size_t>(size_), Step::kNone);
    for (int hop = 1; hop < size_; ++hop) {
      const int peer = around(rank_, hop, size_);
      sent[static_cast<std::size_t>(peer)] = build_.send(peer, part(Area::kInput, segment, peer));
    }
    return sent;
  }
  /// In the order of the ranks behind this one, whoever comes first: the same bits in every run.
  std::int32_t reduce(std::size_t segment) {
    const Range into = part(Area::kData, segment, rank_);
    std::int32_t reduced = Step::kNone;
    for (int hop = 1; hop < size_; ++hop) {
      const int peer = around(rank_, -hop, size_);
      const Range left = hop == 1 ? at(Area::kInput, into) : into;
      reduced = build_.receive_reduce(peer, into, left, reduced);
      if (hop == 1) build_.first_write(reduced);
    }
    return build_.finish(into, reduced);
  }
  /// What others reduced takes the place of what they were `sent`.
  void share(std::size_t segment, std::int32_t reduced, const std::vector<std::int32_t>& sent) {
    for (int hop = 1; hop < size_; ++hop) {
      build_.send(around(rank_, hop, size_), part(Area::kData, segment, rank_), reduced);
    }
    for (int hop = 1; hop < size_; ++hop) {
      const int peer = around(rank_, -hop, size_);
      const std::int32_t received = build_.receive(peer, part(Area::kData, segment, peer),
                                                   sent[static_cast<std::size_t>(peer)]);
      build_.first_write(received);
    }
  }

  int rank_;
  int size_;
  std::size_t element_;
  Pieces segments_;
  Builder build_;
};

}  // namespace

Plan pairwise_allreduce(int rank, int size, Elements elements, std::size_t segment_bytes) {
  if (size == 1) return {};
  if (size == 2) return swap(rank, elements, segment_bytes);
  return Pairwise(rank, size, elements, segment_bytes).make();
}

}  // namespace elastic::plan
