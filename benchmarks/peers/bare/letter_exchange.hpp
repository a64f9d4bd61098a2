#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.hpp"
#include "benchmarks/peers/bare/board.hpp"
#include "benchmarks/peers/bare/patience.hpp"
#include "benchmarks/peers/bare/reduction.hpp"

namespace elastic::bench {

/// Every rank writes its tensor in one piece, and reads all others': one exchange of a cache line
/// where that is enough. Two letters of a rank take turns: whoever writes one has read all those
/// before, so that its own one before the last has been read as well.
class LetterExchange {
 public:
  LetterExchange(const Board& board, Patience& patience, const Reduction& reduction,
                 kernels::Store store)
      : board_(board), patience_(patience), reduction_(reduction), store_(store) {}

  /// What all ranks together read of a tensor of one letter's size bounds it for more of them.
  std::size_t most_bytes() const {
    return BareLetter::kMostBytes / static_cast<std::size_t>(board_.ranks() - 1);
  }
  Status run(const std::byte* input, std::byte* output, std::size_t bytes);

 private:
  const std::byte* payload_of(int rank) const;

  const Board& board_;
  Patience& patience_;
  const Reduction& reduction_;
  const kernels::Store store_;
  std::uint64_t number_ = 0;
};

}  // namespace elastic::bench
