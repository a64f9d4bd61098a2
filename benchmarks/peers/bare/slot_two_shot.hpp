#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.hpp"
#include "benchmarks/peers/bare/board.hpp"
#include "benchmarks/peers/bare/kept_input.hpp"
#include "benchmarks/peers/bare/reduction.hpp"
#include "benchmarks/peers/bare/spin_backoff.hpp"

namespace elastic::bench {

/// Direct reduce-scatter and allgather for any number of ranks, chunk by chunk. A rank copies each
/// other rank's part of a chunk to a slot for that rank, reduces its own part from all ranks'
/// slots, and copies the results of the others. It works ahead as far as there are slots, and waits
/// only if none of the three steps is possible.
class SlotTwoShot {
 public:
  SlotTwoShot(const Board& board, SpinBackoff& backoff, const Reduction& reduction,
              kernels::Store store, KeptInput& kept)
      : board_(board), backoff_(backoff), reduction_(reduction), store_(store), kept_(kept) {}

  Status run(const std::byte* input, std::byte* output, std::size_t bytes);

 private:
  /// The arguments and the progress of one call, in chunks.
  struct Call {
    const std::byte* input;
    std::byte* output;
    std::size_t bytes;
    kernels::Store result_store;
    std::uint64_t chunks = 0;
    std::uint64_t offered = 0;
    std::uint64_t reduced = 0;
    std::uint64_t gathered = 0;
  };
  struct Part {
    std::size_t begin;
    std::size_t bytes;
  };
  std::size_t chunk_bytes() const;
  Part part(const Call& call, std::uint64_t chunk, int rank) const;

  bool may_offer(const Call& call) const;
  bool may_reduce(const Call& call) const;
  bool may_allgather(const Call& call) const;
  void offer(Call& call) const;
  void reduce(Call& call) const;
  void allgather(Call& call) const;

  const Board& board_;
  SpinBackoff& backoff_;
  const Reduction& reduction_;
  const kernels::Store store_;
  KeptInput& kept_;
  std::uint64_t before_ = 0;  ///< chunks of earlier calls
};

}  // namespace elastic::bench
