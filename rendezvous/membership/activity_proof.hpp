#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::rendezvous {

/// Proof of life from operations, for members with late heartbeats. No operation completes on any
/// member before every member has entered it, and no member enters one before it has completed the
/// one before (R1 and R2 in docs/atomicity.md).
///
/// Suppose that a member reports position c of a lane, and that later this or another member
/// reports c + 3. Operation c + 2 is complete there, so every member has entered it, and has
/// completed c + 1. Operation c + 1 completed nowhere before the first reporter had entered it. It
/// had not done so when it reported, because it had yet to complete c. So every member has
/// completed an operation since that first report. (c + 2 would not suffice: the first reporter may
/// have been the last to complete c.)
///
/// Cost: O(lanes) per heartbeat. Not thread-safe: belongs to the thread of its Membership.
class ActivityProof {
 public:
  /// Handles a heartbeat of a member of `view`.
  /// \returns a time since which every member has done something; TimePoint::min() if there is no
  /// proof. It is as exact as the arrival times of the heartbeats.
  TimePoint told(const View& view, const Heartbeat& heartbeat, TimePoint now);

 private:
  static constexpr std::size_t kProof = 3;

  struct Lane {
    std::uint64_t position = 0;  ///< the greatest that was reported
    /// `heard_at[i]`: when a member last reported that position less `i`, or a greater one, and was
    /// the furthest then. A member that is behind does not count: its report may be late.
    std::array<TimePoint, kProof + 1> heard_at;
  };
  static void advance(Lane& lane, std::uint64_t position, TimePoint now);

  std::uint64_t generation_ = 0;  // of these positions
  std::vector<Lane> lanes_;
};

}  // namespace elastic::rendezvous
