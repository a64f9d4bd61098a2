#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace elastic::bench {

/// A slot for a whole small tensor. A short tensor shares one cache line with its number.
struct alignas(64) BareSlot {
  static constexpr std::size_t kMostBytes = std::size_t{32} << 10;

  std::atomic<std::uint64_t> number;  ///< of its exchange; written after the payload
  std::byte payload[kMostBytes];
};

/// The number of chunks that a rank has completed, over all calls.
struct alignas(64) ChunkCount {
  std::atomic<std::uint64_t> chunks;
};

/// The shared memory that one rank writes and the others read.
struct Outbox {
  BareSlot slots[2];    ///< used in turns, because the previous one may still be read
  ChunkCount offered;   ///< chunks of its input that are in its slots
  ChunkCount reduced;   ///< chunks that it has read from the other ranks' slots
  ChunkCount gathered;  ///< chunks for which it has read the other ranks' results
};

/// The outboxes of all ranks, each followed by slots. Tensors pass through the slots in chunks. For
/// each chunk a rank has a slot for each other rank's part, and one for the part that it reduces.
///
/// Size and number of the slots were the fastest on two cores of an EPYC, with and without a shared
/// cache. Two ranks have fewer slots than more ranks, so theirs are larger.
class Board {
 public:
  static std::size_t bytes(int ranks) {
    return Board(nullptr, 0, ranks).stride() * static_cast<std::size_t>(ranks);
  }

  /// `memory` has `bytes(ranks)` bytes and must outlive the board.
  Board(std::byte* memory, int rank, int ranks)
      : slot_bytes_(std::size_t{ranks == 2 ? 128U : 64U} << 10),
        chunks_(8),
        rank_(rank),
        ranks_(ranks),
        memory_(memory) {}

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  std::size_t slot_bytes() const { return slot_bytes_; }
  std::uint64_t chunks() const { return chunks_; }  ///< chunks that a rank has slots for
  Outbox& of(int rank) const { return *reinterpret_cast<Outbox*>(begin_of(rank)); }
  Outbox& own() const { return of(rank_); }

  /// The slot of rank `from` for rank `to`; if both are the same, the slot for the reduced part.
  std::byte* slot(int from, int to, std::uint64_t chunk) const {
    const std::uint64_t index = chunk % chunks_ * static_cast<std::uint64_t>(ranks_);
    return begin_of(from) + kHead + (index + static_cast<std::uint64_t>(to)) * slot_bytes_;
  }

  /// The least value of `count` among the other ranks.
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
