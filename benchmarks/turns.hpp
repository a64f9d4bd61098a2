#pragma once

namespace elastic::bench {

/// How many of `calls` belong to turn `turn` of `turns`, which are as alike as can be.
constexpr int calls_in_turn(int calls, int turns, int turn) {
  return static_cast<int>(static_cast<long>(calls) * (turn + 1) / turns -
                          static_cast<long>(calls) * turn / turns);
}

}  // namespace elastic::bench
