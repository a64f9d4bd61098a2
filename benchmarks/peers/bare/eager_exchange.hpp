#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.hpp"
#include "benchmarks/peers/bare/board.hpp"
#include "benchmarks/peers/bare/reduction.hpp"
#include "benchmarks/peers/bare/spin_backoff.hpp"

namespace elastic::bench {

/// Eager allreduce: every rank writes its tensor to its slot (a BareSlot), then reduces the slots
/// of all ranks. The shortest tensors take one cache line. Each rank has two slots, used in turn:
/// when it writes one, it has read all slots of the call before, so all ranks have read its slot of
/// the call before that.
class EagerExchange {
 public:
  EagerExchange(const Board& board, SpinBackoff& backoff, const Reduction& reduction,
                kernels::Store store)
      : board_(board), backoff_(backoff), reduction_(reduction), store_(store) {}

  /// Size limit: it shrinks with the number of ranks, because a rank reads the tensors of all.
  std::size_t most_bytes() const {
    return BareSlot::kMostBytes / static_cast<std::size_t>(board_.ranks() - 1);
  }
  Status run(const std::byte* input, std::byte* output, std::size_t bytes);

 private:
  const std::byte* payload_of(int rank) const;

  const Board& board_;
  SpinBackoff& backoff_;
  const Reduction& reduction_;
  const kernels::Store store_;
  std::uint64_t number_ = 0;
};

}  // namespace elastic::bench
