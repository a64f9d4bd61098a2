#include "rendezvous/protocol/view_change.hpp"

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>

namespace elastic::rendezvous {
namespace {

using Names = std::vector<std::string>;

void append(RankRuns& runs, std::uint64_t rank) {
  if (!runs.empty() && runs.back() + 1 == rank) {
    runs.back() = rank;
  } else {
    runs.insert(runs.end(), {rank, rank});
  }
}

/// The ranks of members by their names.
class Ranks {
 public:
  explicit Ranks(const std::vector<Member>& members) {
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      ranks_.emplace(members[rank].incarnation, rank);
    }
  }
  std::optional<std::uint64_t> of(const std::string& name) const {
    const auto found = ranks_.find(name);
    return found == ranks_.end() ? std::nullopt : std::optional(found->second);
  }
  /// None: one is no member, or they are not in the order of ranks.
  std::optional<RankRuns> of(const Names& names) const {
    RankRuns runs;
    for (const std::string& name : names) {
      const auto rank = of(name);
      if (!rank || (!runs.empty() && *rank <= runs.back())) return std::nullopt;
      append(runs, *rank);
    }
    return runs;
  }

 private:
  std::unordered_map<std::string, std::uint64_t> ranks_;
};

/// The members of these ranks. None: there are no such ranks.
std::optional<std::vector<const Member*>> members_of(const RankRuns& runs,
                                                     const std::vector<Member>& members) {
  std::vector<const Member*> found;
  std::uint64_t next = 0;
  for (std::size_t i = 0; i + 1 < runs.size(); i += 2) {
    if (runs[i] < next || runs[i + 1] < runs[i] || runs[i + 1] >= members.size()) {
      return std::nullopt;
    }
    next = runs[i + 1] + 1;
    for (std::uint64_t rank = runs[i]; rank < next; ++rank) found.push_back(&members[rank]);
  }
  if (runs.size() % 2 != 0) return std::nullopt;
  return found;
}

/// Appends the names of these ranks. False: there are no such ranks.
bool add_names(const RankRuns& runs, const std::vector<Member>& members, Names& names) {
  const auto found = members_of(runs, members);
  if (!found) return false;
  for (const Member* member : *found) names.push_back(member->incarnation);
  return true;
}

bool add_members(const ViewChange& change, const View& before, View& after) {
  const auto stay = members_of(change.stay, before.members);
  if (!stay) return false;
  for (const Member* member : *stay) after.members.push_back(*member);
  after.members.insert(after.members.end(), change.added.begin(), change.added.end());
  const auto synced = members_of(change.synced, after.members);
  if (!synced) return false;
  for (Member& member : after.members) member.synced = false;
  for (const Member* member : *synced) {
    after.members[static_cast<std::size_t>(member - after.members.data())].synced = true;
  }
  return true;
}

bool add_lanes(const ViewChange& change, View& after) {
  for (const ViewChange::Lane& lane : change.lanes) {
    LaneDecision& its = after.lanes.emplace_back();
    its.position = lane.position;
    its.lost = lane.lost;
    if (!add_names(lane.holders, after.members, its.holders) ||
        !add_names(lane.takers, after.members, its.takers)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<ViewChange> change_between(const View& before, const View& after) {
  ViewChange change;
  change.before = before.generation;
  change.generation = after.generation;
  const Ranks old_ranks(before.members);
  const Ranks new_ranks(after.members);
  for (std::size_t rank = 0; rank < after.members.size(); ++rank) {
    const Member& member = after.members[rank];
    const auto old = old_ranks.of(member.incarnation);
    const bool follows = old && (change.stay.empty() || *old > change.stay.back());
    if (change.added.empty() && follows) {
      append(change.stay, *old);
    } else {
      change.added.push_back(member);
    }
    if (member.synced) append(change.synced, rank);
  }
  bool said = true;
  const auto say = [&](const Ranks& ranks, const Names& names, RankRuns& runs) {
    auto found = ranks.of(names);
    said = said && found;
    if (found) runs = *std::move(found);
  };
  say(new_ranks, after.joined, change.joined);
  say(old_ranks, after.lost, change.lost);
  say(old_ranks, after.left, change.left);
  for (const LaneDecision& lane : after.lanes) {
    ViewChange::Lane& its = change.lanes.emplace_back();
    its.position = lane.position;
    its.lost = lane.lost;
    say(new_ranks, lane.holders, its.holders);
    say(new_ranks, lane.takers, its.takers);
  }
  change.commits = after.commits;
  change.admitted_at = after.admitted_at;
  change.cause = after.cause;
  change.broken = after.broken;
  change.below_minimum = after.below_minimum;
  if (!said) return std::nullopt;
  const Result<View> made = apply(change, before);
  return made.ok() && made.value() == after ? std::optional(std::move(change)) : std::nullopt;
}

Result<View> apply(const ViewChange& change, const View& before) {
  if (change.before != before.generation) {
    return Status(Code::kProtocol, "view " + std::to_string(change.generation) +
                                       " came as a change of view " +
                                       std::to_string(change.before) + ", and the latest is " +
                                       std::to_string(before.generation));
  }
  View after;
  after.generation = change.generation;
  if (!add_members(change, before, after) || !add_lanes(change, after) ||
      !add_names(change.joined, after.members, after.joined) ||
      !add_names(change.lost, before.members, after.lost) ||
      !add_names(change.left, before.members, after.left)) {
    return Status(Code::kProtocol,
                  "view " + std::to_string(change.generation) + " names ranks that do not exist");
  }
  after.commits = change.commits;
  after.admitted_at = change.admitted_at;
  after.cause = change.cause;
  after.broken = change.broken;
  after.below_minimum = change.below_minimum;
  return after;
}

Result<SharedView> change_shared(const ViewChange& change, const SharedView& before) {
  Result<View> after = apply(change, *before);
  if (!after.ok()) return after.status();
  return std::make_shared<const View>(std::move(after).value());
}

Status AnnouncedView::take(const ViewChange& change) {
  Result<SharedView> changed = change_shared(change, view_);
  Status status = changed.status();
  if (status.ok()) view_ = std::move(changed).value();
  return status;
}

}  // namespace elastic::rendezvous
