#pragma once

#include "base/clock.hpp"

namespace elastic::transport {

/// How often to let others run before sleeping. A yield is the quickest way on where the peer waits
/// for the same core. Where another program does, it lasts as long as that goes on, and nothing
/// that arrives meanwhile ends it, as it would end a sleep in poll(2).
class YieldBudget {
 public:
  static constexpr int kMost = 200;
  /// Longer than a peer takes for what it does between two looks at its links.
  static constexpr Milliseconds kLong{1};
  /// After a long yield so many waits go without any, until another is tried.
  static constexpr int kProbe = 64;

  int rounds() const { return without_ > 0 ? 0 : kMost; }

  void learn(Duration yield) {
    if (yield >= kLong) without_ = kProbe;
  }
  void next_wait() {
    if (without_ > 0) --without_;
  }

 private:
  int without_ = 0;
};

}  // namespace elastic::transport
