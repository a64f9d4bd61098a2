#include "rendezvous/membership/activity_proof.hpp"

#include <algorithm>

namespace elastic::rendezvous {
namespace {

/// More operations than can complete between two heartbeats, or while the server is away.
constexpr std::uint64_t kImpossible = std::uint64_t{1} << 40U;

}  // namespace

TimePoint ActivityProof::told(const View& view, const Heartbeat& heartbeat, TimePoint now) {
  if (heartbeat.generation != view.generation) return TimePoint::min();
  if (heartbeat.positions.size() != view.lanes.size()) return TimePoint::min();
  if (generation_ != view.generation) {
    generation_ = view.generation;
    lanes_.clear();
    for (const LaneDecision& lane : view.lanes) lanes_.push_back({lane.position, {}});
    for (Lane& lane : lanes_) lane.heard_at.fill(TimePoint::min());
  }
  TimePoint proven = TimePoint::min();
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    advance(lanes_[i], heartbeat.positions[i], now);
    proven = std::max(proven, lanes_[i].heard_at[kProof]);
  }
  return proven;
}

void ActivityProof::advance(Lane& lane, std::uint64_t position, TimePoint now) {
  if (position < lane.position || position - lane.position >= kImpossible) return;
  const std::uint64_t steps = position - lane.position;
  for (std::uint64_t i = kProof; i > 0; --i) {
    lane.heard_at[i] = lane.heard_at[i - std::min(i, steps)];
  }
  lane.heard_at[0] = now;
  lane.position = position;
}

}  // namespace elastic::rendezvous
