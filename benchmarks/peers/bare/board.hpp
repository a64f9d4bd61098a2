#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace elastic::bench {

/// A tensor in one piece. What is short lies on one cache line with its number.
struct alignas(64) BareLetter {
  static constexpr std::size_t kMostBytes = std::size_t{32} << 10;

  std::atomic<std::uint64_t> number;  ///< of the exchange that it belongs to; written last
  std::byte payload[kMostBytes];
};

/// How many chunks a rank is done with, of all calls together.
struct alignas(64) ChunkCount {
  std::atomic<std::uint64_t> chunks;
};

/// What one rank writes and the others read.
struct Outbox {
  BareLetter letters[2];  ///< in turns: the one before may still be read
  ChunkCount offered;     ///< its input is in the slots
  ChunkCount reduced;     ///< it has read the others' slots
  ChunkCount gathered;    ///< it has read the others' results
};

/// The outboxes of all ranks, each with slots. Tensors go through in chunks: a rank has a slot for
/// the part of a chunk that each other needs, and one for the part that it has reduced itself.
///
/// What slots hold and how many there are is what was fastest on two cores of an EPYC, whether they
/// shared a cache or not: larger ones for two ranks, which have fewer of them.
class Board {
 public:
  static std::size_t bytes(int ranks) {
    return Board(nullptr, 0, ranks).stride() * static_cast<std::size_t>(ranks);
  }

  /// `memory` outlives it, and has that many bytes.
  Board(std::byte* memory, int rank, int ranks)
      : slot_bytes_(std::size_t{ranks == 2 ? 128U : 64U} << 10),
        chunks_(8),
        rank_(rank),
        ranks_(ranks),
        memory_(memory) {}

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  std::size_t slot_bytes() const { return slot_bytes_; }
  std::uint64_t chunks() const { return chunks_; }  ///< whose slots a rank has at a time
  Outbox& of(int rank) const { return *reinterpret_cast<Outbox*>(begin_of(rank)); }
  Outbox& own() const { return of(rank_); }

  /// Of `from`, for `to`; where both are the same, for what it has reduced.
  std::byte* slot(int from, int to, std::uint64_t chunk) const {
    const std::uint64_t index = chunk % chunks_ * static_cast<std::uint64_t>(ranks_);
    return begin_of(from) + kHead + (index + static_cast<std::uint64_t>(to)) * slot_bytes_;
  }

  /// The least that another rank says.
  std::uint64_t least(ChunkCount Outbox::*count) const {
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (int rank = 0; rank < ranks_; ++rank) {
      if (rank == rank_) continue;
      least = std::min(least, (of(rank).*count).chunks.load(std::memory_order_acquire));
    }
    return least;
  }

 private:
  static constexpr std::size_t kHead = (sizeof(Outbox) + 4095) / 4096 * 4096;
  std::size_t stride() const {
    return kHead + chunks_ * static_cast<std::size_t>(ranks_) * slot_bytes_;
  }
  std::byte* begin_of(int rank) const {
    return memory_ + stride() * static_cast<std::size_t>(rank);
  }

  const std::size_t slot_bytes_;
  const std::uint64_t chunks_;
  const int rank_;
  const int ranks_;
  std::byte* const memory_;
};

}  // namespace elastic::bench
