#include "collectives/plan/ring.hpp"

#include "collectives/plan/builder.hpp"

namespace elastic::plan {
namespace {

/// The ring (Patarasuk, Yuan 2009: Bandwidth optimal all-reduce algorithms for clusters of
/// workstations). kData has one block per rank; a rank sends to the next rank and receives from the
/// one before.
///
/// - A turn has size - 1 steps. In each step a rank sends the block that it received in the step
///   before, and receives another.
/// - Reduce-scatter: a rank adds each received block to its own data. The turn begins with block
///   rank - 1; at its end the rank has the sum of block `rank`.
/// - Allgather: a rank stores each received block. The turn begins with block `rank`, which is sent
///   from kInput, and copied to its place among the others.
/// - Cost of a turn: each rank sends (size - 1) / size of the data, the least of any algorithm, and
///   waits for size - 1 latencies.
/// - Blocks travel in segments, each of which is sent on as soon as it has arrived.
///
/// No receive waits for anything: what overwrites a block can only arrive after what this rank had
/// sent of that block has gone round the ring.
class Ring {
 public:
  /// Block i is [bounds[i], bounds[i + 1]) bytes.
  Ring(int rank, std::vector<std::size_t> bounds, std::size_t segment_bytes)
      : rank_(rank),
        size_(static_cast<int>(bounds.size()) - 1),
        bounds_(std::move(bounds)),
        segment_(segment_bytes),
        arrived_(static_cast<std::size_t>(size_)) {}

  enum class Mode : std::uint8_t { kReduce, kGather };

  /// size-1 steps: in each the block received in the step before is sent on, starting with block
  /// `first`, which is sent as soon as it has arrived, if it ever had to.
  void turn(Mode mode, int first) {
    for (int step = 0; step + 1 < size_; ++step) {
      const int out = around(first, -step, size_);
      const int in = around(first, -step - 1, size_);
      send(out, mode == Mode::kGather && step == 0 ? Area::kInput : Area::kData);
      receive(mode, in);
    }
  }
  /// Copies this rank's block to its place.
  void keep() {
    const std::size_t begin = bounds_[static_cast<std::size_t>(rank_)];
    const std::size_t bytes = bounds_[static_cast<std::size_t>(rank_) + 1] - begin;
    if (bytes == 0) return;
    build_.local(Step::Kind::kCopy, {Area::kData, begin, bytes}, {Area::kInput, 0, bytes});
  }
  Plan take() { return build_.take(); }

 private:
  Pieces pieces(int block) const {
    const auto at = static_cast<std::size_t>(block);
    return {bounds_[at], bounds_[at + 1] - bounds_[at], segment_};
  }
  /// kInput has the block alone.
  void send(int block, Area area) {
    const Pieces parts = pieces(block);
    const std::size_t start =
        area == Area::kInput ? bounds_[static_cast<std::size_t>(block)] : std::size_t{0};
    const auto& arrived = arrived_[static_cast<std::size_t>(block)];
    for (std::size_t i = 0; i < parts.count(); ++i) {
      const Range from{area, parts.offset(i) - start, parts.bytes(i)};
      build_.send(around(rank_, 1, size_), from, arrived.empty() ? Step::kNone : arrived[i]);
    }
  }
  void receive(Mode mode, int block) {
    const Pieces parts = pieces(block);
    const int peer = around(rank_, -1, size_);
    auto& arrived = arrived_[static_cast<std::size_t>(block)];
    arrived.clear();
    for (std::size_t i = 0; i < parts.count(); ++i) {
      const Range into{Area::kData, parts.offset(i), parts.bytes(i)};
      arrived.push_back(mode == Mode::kReduce ? build_.receive_reduce(peer, into, into)
                                              : build_.receive(peer, into));
    }
  }

  int rank_;
  int size_;
  std::vector<std::size_t> bounds_;
  std::size_t segment_;
  Builder build_;
  std::vector<std::vector<std::int32_t>>
      arrived_;  // per block: the steps that received its segments
};

std::vector<std::size_t> equal_parts(int size, Elements elements) {
  const auto parts = static_cast<std::size_t>(size);
  std::vector<std::size_t> bounds(parts + 1);
  for (std::size_t i = 0; i <= parts; ++i) {
    bounds[i] = part_begin(elements.count, parts, i) * elements.bytes;
  }
  return bounds;
}

}  // namespace

Plan ring_reduce_scatter(int rank, int size, Elements elements, std::size_t segment_bytes) {
  Ring ring(rank, equal_parts(size, elements), whole_elements(segment_bytes, elements.bytes));
  ring.turn(Ring::Mode::kReduce, around(rank, -1, size));
  return ring.take();
}

Plan ring_allgather(int rank, const std::vector<std::uint64_t>& counts, std::size_t element_bytes,
                    std::size_t segment_bytes) {
  std::vector<std::size_t> bounds{0};
  for (const std::uint64_t count : counts) {
    bounds.push_back(bounds.back() + static_cast<std::size_t>(count) * element_bytes);
  }
  Ring ring(rank, std::move(bounds), whole_elements(segment_bytes, element_bytes));
  ring.turn(Ring::Mode::kGather, rank);
  ring.keep();
  return ring.take();
}

}  // namespace elastic::plan
