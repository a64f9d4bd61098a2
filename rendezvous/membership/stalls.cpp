#include "rendezvous/membership/stalls.hpp"

#include <algorithm>

#include "base/join_name.hpp"
#include "rendezvous/membership/stall_text.hpp"

namespace elastic::rendezvous {
namespace {

using Members = std::vector<const Heartbeat*>;

std::uint64_t furthest(const Members& members, std::size_t lane) {
  std::uint64_t position = 0;
  for (const Heartbeat* member : members) {
    position = std::max(position, member->positions[lane]);
  }
  return position;
}

/// The call in which some members of the lane wait for others to enter it; "" if there is none.
std::string stalled_call(const Members& members, std::size_t lane) {
  const std::uint64_t position = furthest(members, lane);
  const CallUnderWay* first = nullptr;
  const Heartbeat* in_operation = nullptr;
  const Heartbeat* with_tensor = nullptr;
  bool all_in_operation = true;
  bool all_have_tensor = true;
  for (const Heartbeat* member : members) {
    const CallUnderWay& its = (*member->calls)[lane];
    if (its.tensor != kJoinName) {  // the others do not wait for a member that has joined
      if (first == nullptr) first = &its;
      all_have_tensor = all_have_tensor && its.tensor == first->tensor;
      if (!its.tensor.empty() && with_tensor == nullptr) with_tensor = member;
    }
    if (its.kind.empty()) {
      all_in_operation = false;
    } else if (member->positions[lane] == position) {
      in_operation = member;
    } else {
      return {};  // every member has entered it, and this one has not finished its part
    }
  }
  if (in_operation != nullptr) return all_in_operation ? "" : call_in(*in_operation, lane);
  // No order is agreed yet. Members that have submitted the same tensors have the same first name.
  return with_tensor == nullptr || all_have_tensor ? "" : call_in(*with_tensor, lane);
}

bool comparable(const Members& members) {
  return !members.empty() && std::all_of(members.begin(), members.end(), [&](const auto* member) {
    return member->calls && member->calls->size() == member->positions.size() &&
           member->positions.size() == members.front()->positions.size();
  });
}

}  // namespace

Stalls::Verdict Stalls::look(const Members& members, const Limits& limits, TimePoint now) {
  Verdict verdict;
  if (!comparable(members)) {
    pause();
    return verdict;
  }
  const Duration passed =
      looked_at_ ? std::min<Duration>(now - *looked_at_, longest_gap_) : Duration(0);
  looked_at_ = now;
  lanes_.resize(members.front()->positions.size());
  for (std::size_t i = 0; i < lanes_.size(); ++i) follow(i, members, passed, verdict);
  const auto stalled =
      std::find_if(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.stalled; });
  if (stalled == lanes_.end()) return verdict;
  // One text for both lanes: it names the call of every member.
  Lane& lane = *stalled;
  const auto text = [&](const Lane& its) {
    return stall_text(members, static_cast<std::size_t>(&its - lanes_.data()), its.lasted);
  };
  if (limits.warning.count() > 0 &&
      lane.lasted >= std::max<Duration>(lane.next_warning, limits.warning)) {
    verdict.warnings.push_back(text(lane));
    lane.warned = true;
    lane.next_warning = 2 * lane.lasted;
  }
  for (const Lane& its : lanes_) {
    if (limits.timeout.count() == 0 || !its.stalled || its.lasted < limits.timeout) continue;
    verdict.failure = text(its);
    break;
  }
  return verdict;
}

void Stalls::follow(std::size_t index, const Members& members, Duration passed, Verdict& verdict) {
  Lane& lane = lanes_[index];
  std::string call = stalled_call(members, index);
  const std::uint64_t position = furthest(members, index);
  const bool stalled = !call.empty();
  if (lane.stalled && stalled && lane.position == position) {
    lane.lasted += passed;
    return;
  }
  if (lane.warned) {
    verdict.warnings.push_back("the job goes on: " + lane.call + " was waited for " +
                               seconds_text(lane.lasted));
  }
  lane = {stalled, position, std::move(call)};
}

}  // namespace elastic::rendezvous
