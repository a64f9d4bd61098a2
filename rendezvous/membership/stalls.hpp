#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::rendezvous {

/// Finds stalls: some members are in a call, or have submitted a named tensor, and others have not
/// come. A call that every member has entered is none, however long its data takes, and nor is
/// anything while the view changes.
///
/// The members' heartbeats tell where each of them is. A stall lasts as long as the operations
/// completed in its lane stay the same; only time in which it was seen counts.
///
/// Belongs to the thread of its Membership.
class Stalls {
 public:
  /// 0: never.
  struct Limits {
    Milliseconds warning{0};
    Milliseconds timeout{0};
  };
  struct Verdict {
    std::vector<std::string> warnings;  ///< for the log of every member
    std::string failure;                ///< why the job is to end; empty: it is not
  };

  /// Looks that are further apart than `longest_gap` count as that: the server stood still itself.
  explicit Stalls(Milliseconds longest_gap) : longest_gap_(longest_gap) {}

  /// `members`: the latest heartbeats of all members, in rank order, all of the present view.
  Verdict look(const std::vector<const Heartbeat*>& members, const Limits& limits, TimePoint now);
  /// The heartbeats tell nothing now. Time does not count until the next look.
  void pause() { looked_at_.reset(); }

 private:
  struct Lane {
    bool stalled = false;
    std::uint64_t position = 0;
    std::string call;  ///< what members wait in
    Duration lasted{0};
    Duration next_warning{0};
    bool warned = false;
  };

  void follow(std::size_t lane, const std::vector<const Heartbeat*>& members, Duration passed,
              Verdict& verdict);

  const Milliseconds longest_gap_;
  std::optional<TimePoint> looked_at_;
  std::vector<Lane> lanes_;
};

}  // namespace elastic::rendezvous
