#include "collectives/plan/allreduce.hpp"

#include <bit>

#include "collectives/plan/builder.hpp"

namespace elastic::plan {

Plan one_shot_allreduce(int rank, int size, std::size_t bytes) {
  using enum Step::Kind;
  Builder build;
  if (size == 1) return build.take();
  build.need_scratch(static_cast<std::size_t>(size) * bytes);
  const Range data{Area::kData, 0, bytes};
  const auto slot = [bytes](int of) {
    return Range{Area::kScratch, static_cast<std::size_t>(of) * bytes, bytes};
  };
  // Sent data stays in a slot of its own, so that the folding need not wait for the sends.
  const std::int32_t kept = build.local(kCopy, slot(rank), data);
  for (int hop = 1; hop < size; ++hop) build.send(around(rank, hop, size), slot(rank), kept);
  std::vector<std::int32_t> arrived(static_cast<std::size_t>(size), kept);
  for (int hop = 1; hop < size; ++hop) {
    const int peer = around(rank, -hop, size);
    arrived[static_cast<std::size_t>(peer)] = build.receive(peer, slot(peer));
  }
  // Rank 0's data first, then the others' in rank order. Ranks 0 and 1 have an operand of the first
  // reduction in place already.
  std::int32_t folded = kept;
  int next = 1;
  if (rank == 1) {
    folded = build.local(kReduceFlipped, data, slot(0), arrived[0], kept);
    next = 2;
  } else if (rank > 1) {
    folded = build.local(kCopy, data, slot(0), arrived[0], kept);
  }
  for (; next < size; ++next) {
    folded =
        build.local(kReduce, data, slot(next), arrived[static_cast<std::size_t>(next)], folded);
  }
  return build.take();
}

namespace {

/// Recursive doubling (Thakur, Rabenseifner, Gropp 2005: Optimization of collective communication
/// operations in MPICH), for small data.
///
/// 1. Fold, if the size is no power of two: the surplus ranks send their data to a neighbour, which
///    adds it. 2^k ranks are left.
/// 2. In round i = 0 ... k - 1 each rank that is left exchanges all of its data with the rank at
///    its place with bit i flipped, and both add them.
/// 3. The neighbours send the result to the surplus ranks.
///
/// Cost: log2(size) hops, in each of which a rank sends all of the data.
class Doubling {
 public:
  Doubling(int size, std::size_t bytes)
      : left_(static_cast<int>(std::bit_floor(static_cast<unsigned>(size)))),
        folded_(size - left_),
        data_{Area::kData, 0, bytes} {}

  Plan make(int rank) {
    const int rounds = std::countr_zero(static_cast<unsigned>(left_));
    build_.need_scratch(data_.bytes * static_cast<std::size_t>(rounds + (folded_ > 0 ? 1 : 0)));
    const bool paired = rank < 2 * folded_;
    if (paired && rank % 2 == 1) {
      build_.send(rank - 1, data_);
      // The result depends on what was sent, so it cannot come before that has left.
      build_.receive(rank - 1, data_);
      return build_.take();
    }
    std::int32_t whole = Step::kNone;  // the step after which kData holds this rank's group
    if (paired) {
      const std::int32_t arrived = build_.receive(rank + 1, slot(rounds));
      whole = build_.local(Step::Kind::kReduce, data_, slot(rounds), arrived);
    }
    const int place = paired ? rank / 2 : rank - folded_;
    for (int round = 0; round < rounds; ++round) whole = exchange(place, round, whole);
    if (paired) build_.send(rank + 1, data_, whole);
    return build_.take();
  }

 private:
  /// The lower group's operand comes first on both sides, so that both get the same bits.
  std::int32_t exchange(int place, int round, std::int32_t whole) {
    const int bit = 1 << round;
    const int other = place ^ bit;
    const int peer = other < folded_ ? 2 * other : other + folded_;
    const std::int32_t sent = build_.send(peer, data_, whole);
    const std::int32_t arrived = build_.receive(peer, slot(round));
    const auto kind = place < other ? Step::Kind::kReduce : Step::Kind::kReduceFlipped;
    return build_.local(kind, data_, slot(round), arrived, sent);
  }
  Range slot(int index) const {
    return {Area::kScratch, static_cast<std::size_t>(index) * data_.bytes, data_.bytes};
  }

  int left_;    // greatest power of two that is not above the size
  int folded_;  // pairs of ranks of which one stands for both
  Range data_;
  Builder build_;
};

}  // namespace

Plan recursive_doubling_allreduce(int rank, int size, std::size_t bytes) {
  return Doubling(size, bytes).make(rank);
}

}  // namespace elastic::plan
