#pragma once

namespace elastic::bench {

/// The number of calls in turn `turn`, with `calls` distributed over `turns` as evenly as possible.
constexpr int calls_in_turn(int calls, int turns, int turn) {
  return static_cast<int>(static_cast<long>(calls) * (turn + 1) / turns -
                          static_cast<long>(calls) * turn / turns);
}

}  // namespace elastic::bench
