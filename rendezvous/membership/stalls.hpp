#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::rendezvous {

/// Finds stalls: calls that some members have entered, or named calls that they have submitted, and
/// others of those that make them have not. A call that every member has entered is no stall,
/// however long its data takes, and neither is a view change.
///
/// The members' heartbeats say which call each of them is in. A stall lasts as long as the number
/// of operations completed in its lane does not change. Only time between looks that both saw it
/// counts.
///
/// Not thread-safe: belongs to the thread of its Membership.
class Stalls {
 public:
  /// 0: never.
  struct Limits {
    Milliseconds warning{0};
    Milliseconds timeout{0};
  };
  struct Verdict {
    std::vector<std::string> warnings;  ///< for the log of every member
    std::string stall;                  ///< the one of a stall that lasts; empty: there is none
    std::string failure;                ///< why the job is to end; empty: it is not
  };

  /// Time between looks counts up to `longest_gap`: beyond it the server itself was paused.
  explicit Stalls(Milliseconds longest_gap) : longest_gap_(longest_gap) {}

  /// Looks at the latest heartbeats of all `members`, in rank order, all of the present view.
  Verdict look(const std::vector<const Heartbeat*>& members, const Limits& limits, TimePoint now);
  void set_longest_gap(Milliseconds longest_gap) { longest_gap_ = longest_gap; }
  /// The heartbeats show no stall now. Time does not count until the next look.
  void pause() { looked_at_.reset(); }

 private:
  struct Lane {
    bool stalled = false;
    std::uint64_t position = 0;
    std::string call;                ///< the call that members wait in
    std::vector<std::size_t> ranks;  ///< that it concerns
    Duration lasted{0};
    Duration next_warning{0};
    bool warned = false;
  };

  void follow(std::size_t lane, const std::vector<const Heartbeat*>& members, Duration passed,
              Verdict& verdict);

  Milliseconds longest_gap_;
  std::optional<TimePoint> looked_at_;
  std::vector<Lane> lanes_;
};

}  // namespace elastic::rendezvous
