#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.hpp"
#include "benchmarks/peers/bare/board.hpp"
#include "benchmarks/peers/bare/kept_input.hpp"
#include "benchmarks/peers/bare/reduction.hpp"
#include "benchmarks/peers/bare/spin_backoff.hpp"

namespace elastic::bench {

/// Two-rank exchange: each rank copies its whole tensor to slots, and reduces the peer's slots.
class SlotExchange {
 public:
  SlotExchange(const Board& board, SpinBackoff& backoff, const Reduction& reduction,
               kernels::Store store, KeptInput& kept)
      : board_(board), backoff_(backoff), reduction_(reduction), store_(store), kept_(kept) {}

  Status run(const std::byte* input, std::byte* output, std::size_t bytes);

 private:
  const Board& board_;
  SpinBackoff& backoff_;
  const Reduction& reduction_;
  const kernels::Store store_;
  KeptInput& kept_;
  std::uint64_t before_ = 0;  ///< chunks of earlier calls
};

}  // namespace elastic::bench
