#pragma once

#include <algorithm>

namespace elastic::transport {

/// How many rounds to spin before letting others run. Learns from the waits before: where ranks
/// outnumber cores, a spinning thread keeps the very peer from running that it waits for, and each
/// hop costs a whole spin.
class SpinBudget {
 public:
  static constexpr int kMost = 256;
  static constexpr int kLeast = 2;
  /// Every so many waits the most is tried, to find out whether spinning has become worth it.
  static constexpr int kProbe = 64;

  int rounds() const { return waits_ % kProbe == 0 ? kMost : rounds_; }

  /// A wait ended after `idle` rounds, those after the spinning included.
  void learn(int idle) {
    const bool worth_it = idle <= rounds();
    ++waits_;
    // What came while spinning will fit into the next budget, too, with room to spare.
    rounds_ = std::clamp(worth_it ? std::max(rounds_, idle) * 2 : rounds_ / 2, kLeast, kMost);
  }

 private:
  int rounds_ = 64;
  unsigned waits_ = 1;
};

}  // namespace elastic::transport
