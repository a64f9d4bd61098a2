#include "rendezvous/membership/stalls.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

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

/// A call that some members wait in, and the ranks that make it.
struct StalledCall {
  std::string text;
  std::vector<std::size_t> ranks;
};

std::vector<std::size_t> all_ranks(const Members& members) {
  return ranks_in({}, members.size());
}

/// The state of a named call on the ranks that make it.
enum class Submitted : std::uint8_t { kByAll, kElsewhere, kLacking };

/// `kLacking`: a rank is in no named call at all. A member that has joined is not waited for.
Submitted submitted(const Members& members, const std::vector<std::size_t>& ranks,
                    const CallUnderWay& call, std::size_t lane) {
  Submitted found = Submitted::kByAll;
  for (const std::size_t rank : ranks) {
    const CallUnderWay& its = (*members[rank]->calls)[lane];
    if (its.tensor.empty()) return Submitted::kLacking;
    if (its.tensor == kJoinName) continue;
    if (its.tensor != call.tensor) found = Submitted::kElsewhere;
  }
  return found;
}

/// The named call that some of its ranks have submitted, and others have not. No order is agreed
/// yet: members that have submitted the same calls have the same first name.
std::optional<StalledCall> stalled_named_call(const Members& members, std::size_t lane) {
  std::optional<StalledCall> stalled;
  std::set<std::string_view> seen;
  for (const Heartbeat* member : members) {
    const CallUnderWay& its = (*member->calls)[lane];
    if (its.tensor.empty() || its.tensor == kJoinName || !seen.insert(its.tensor).second) continue;
    std::vector<std::size_t> ranks = ranks_in(its, members.size());
    const Submitted by = submitted(members, ranks, its, lane);
    if (by == Submitted::kByAll || (by == Submitted::kElsewhere && stalled)) continue;
    stalled = {call_in(*member, lane), std::move(ranks)};
    if (by == Submitted::kLacking) break;
  }
  return stalled;
}

/// The call in which some members of the lane wait for others to enter it.
std::optional<StalledCall> stalled_call(const Members& members, std::size_t lane) {
  const std::uint64_t position = furthest(members, lane);
  const Heartbeat* in_operation = nullptr;
  bool all_in_operation = true;
  for (const Heartbeat* member : members) {
    if ((*member->calls)[lane].kind.empty()) {
      all_in_operation = false;
    } else if (member->positions[lane] == position) {
      in_operation = member;
    } else {
      return {};  // every member has entered it, and this one has not finished its part
    }
  }
  if (in_operation == nullptr) return stalled_named_call(members, lane);
  if (all_in_operation) return {};
  return StalledCall{call_in(*in_operation, lane), all_ranks(members)};
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
  // One text for both lanes: it names the call of every member that is to make the call.
  Lane& lane = *stalled;
  const auto text = [&](const Lane& its) {
    return stall_text(members, its.ranks, static_cast<std::size_t>(&its - lanes_.data()),
                      its.lasted);
  };
  if (limits.warning.count() > 0 &&
      lane.lasted >= std::max<Duration>(lane.next_warning, limits.warning)) {
    verdict.stall = text(lane);
    verdict.warnings.push_back(verdict.stall);
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
  std::optional<StalledCall> call = stalled_call(members, index);
  const std::uint64_t position = furthest(members, index);
  if (lane.stalled && call && lane.position == position) {
    lane.lasted += passed;
    lane.ranks = std::move(call->ranks);
    return;
  }
  if (lane.warned) {
    verdict.warnings.push_back("the job goes on: " + lane.call + " was waited for " +
                               seconds_text(lane.lasted));
  }
  lane = {};
  lane.position = position;
  if (!call) return;
  lane.stalled = true;
  lane.call = std::move(call->text);
  lane.ranks = std::move(call->ranks);
}

}  // namespace elastic::rendezvous
