#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::rendezvous {

/// What operations tell of members that are not heard themselves: an operation is complete nowhere
/// before every member has entered it, and nobody enters one before it has completed the one before
/// (R1 and R2 in docs/atomicity.md).
///
/// So let a member say that it is at position c of a lane, and let one, that or another, say later
/// that it is at c + 3. Operation c + 2 is complete there: all have entered it, so all have
/// completed c + 1. That completed nowhere before the first speaker had entered it, which it had
/// not when it spoke, since it was yet to complete c. So every member has completed an operation
/// since then. (c + 2 would not do: the first speaker may have been the last to complete c.)
///
/// Belongs to the thread of its Membership.
class Progress {
 public:
  /// A member of `view` says something at `now`. Returns a time since which every member has done
  /// something; TimePoint::min() where nothing tells. It is as exact as the arrival of what is
  /// said.
  TimePoint told(const View& view, const Heartbeat& heartbeat, TimePoint now);

 private:
  static constexpr std::size_t kProof = 3;

  struct Lane {
    std::uint64_t position = 0;  ///< the furthest that was told
    /// When somebody was last heard to be `i` before that position or more, and was the furthest
    /// then. Who is behind is not counted: it may be what it says that is late.
    std::array<TimePoint, kProof + 1> heard_at;
  };
  static void advance(Lane& lane, std::uint64_t position, TimePoint now);

  std::uint64_t generation_ = 0;  // whose positions these are
  std::vector<Lane> lanes_;
};

}  // namespace elastic::rendezvous
