#include "rendezvous/membership/decide_view.hpp"

#include <algorithm>
#include <cstdint>

namespace elastic::rendezvous {
namespace {

using Reporters = std::vector<const Reporter*>;

std::uint64_t position(const Reporter& reporter, std::size_t lane) {
  return reporter.report.lanes[lane].position;
}

std::uint64_t front(const Reporters& reporters, std::size_t lane) {
  std::uint64_t greatest = 0;
  for (const Reporter* reporter : reporters) {
    greatest = std::max(greatest, position(*reporter, lane));
  }
  return greatest;
}

/// The number of operations by which `reporter` is behind, if no member can repair that (only the
/// last result of a lane is kept); otherwise 0.
std::uint64_t beyond_repair(const Reporter& reporter, const std::vector<std::uint64_t>& fronts) {
  std::uint64_t behind = 0;
  for (std::size_t lane = 0; lane < fronts.size(); ++lane) {
    behind = std::max(behind, fronts[lane] - position(reporter, lane));
  }
  return behind > 1 ? behind : 0;
}

/// Whether in some lane a stayer lacks a result that `leaver` has and no stayer has.
bool needed(const Reporter& leaver, const Reporters& fit,
            const std::vector<std::uint64_t>& fronts) {
  for (std::size_t lane = 0; lane < fronts.size(); ++lane) {
    if (position(leaver, lane) != fronts[lane]) continue;
    bool stayer_lacks = false;
    bool stayer_has = false;
    for (const Reporter* other : fit) {
      if (other->leaving) continue;
      (position(*other, lane) == fronts[lane] ? stayer_has : stayer_lacks) = true;
    }
    if (stayer_lacks && !stayer_has) return true;
  }
  return false;
}

/// The decision on one lane. Members at the greatest position hold the last result; members behind
/// take it. The operation in flight at that position is lost if a member that has entered it needs
/// a worker that is not in the next view.
LaneDecision decide_lane(const Reporters& members, std::size_t lane) {
  LaneDecision decision;
  decision.position = front(members, lane);
  std::set<std::string> incarnations;
  for (const Reporter* member : members) incarnations.insert(member->member.incarnation);
  for (const Reporter* member : members) {
    const Report::Lane& reported = member->report.lanes[lane];
    if (reported.position != decision.position) {
      decision.takers.push_back(member->member.incarnation);
      continue;
    }
    decision.holders.push_back(member->member.incarnation);
    // A taker's `needs` does not matter: the operation that it was in is committed.
    if (!reported.needs.empty() && !incarnations.contains(reported.needs)) decision.lost = true;
  }
  if (decision.takers.empty()) decision.holders.clear();
  return decision;
}

/// The reporters that become members. A reporter that is more than one operation behind is evicted.
/// A leaver is left out, unless a staying member lacks a result that only leavers have.
Reporters choose(const ViewQuestion& question, ViewAnswer& answer) {
  Reporters all;
  for (const Reporter& reporter : question.reporters) all.push_back(&reporter);
  std::vector<std::uint64_t> fronts;
  for (std::size_t lane = 0; lane < question.current.lanes.size(); ++lane) {
    fronts.push_back(front(all, lane));
  }
  Reporters fit;
  for (const Reporter* reporter : all) {
    const std::uint64_t behind = beyond_repair(*reporter, fronts);
    if (behind == 0) {
      fit.push_back(reporter);
    } else if (!reporter->leaving) {
      answer.evicted.push_back({reporter->member.incarnation,
                                "is " + std::to_string(behind) +
                                    " operations behind, and only the last result is kept"});
    }
  }
  Reporters chosen;
  for (const Reporter* reporter : fit) {
    if (reporter->leaving && !needed(*reporter, fit, fronts)) continue;
    if (reporter->leaving) answer.retained.push_back(reporter->member.incarnation);
    chosen.push_back(reporter);
  }
  return chosen;
}

/// Lists the members of the current view that are not in the next one, as `left` or `lost`.
void compare(const ViewQuestion& question, View& next) {
  std::set<std::string> present;
  for (const Member& member : next.members) present.insert(member.incarnation);
  std::set<std::string> by_choice = question.gone_by_choice;
  for (const Reporter& reporter : question.reporters) {
    if (reporter.leaving) by_choice.insert(reporter.member.incarnation);
  }
  for (const Member& member : question.current.members) {
    if (present.contains(member.incarnation)) continue;
    (by_choice.contains(member.incarnation) ? next.left : next.lost).push_back(member.incarnation);
  }
}

}  // namespace

ViewAnswer decide_view(const ViewQuestion& question) {
  ViewAnswer answer;
  View& next = answer.view;
  const Reporters chosen = choose(question, answer);

  next.generation = question.generation;
  next.admitted_at = question.current.admitted_at;
  for (const Reporter* reporter : chosen) {
    next.members.push_back(reporter->member);
    next.members.back().synced = reporter->report.synced;
    next.commits = std::max(next.commits, reporter->report.commits);
  }
  for (std::size_t lane = 0; lane < question.current.lanes.size(); ++lane) {
    next.lanes.push_back(decide_lane(chosen, lane));
  }
  compare(question, next);
  if (next.members.empty()) return answer;  // no member is left to give a joiner the state
  // Joiners wait while some member lacks a result. A joiner starts at the position after that
  // result without having it, so it would count as a holder if the holders died.
  if (std::any_of(next.lanes.begin(), next.lanes.end(),
                  [](const LaneDecision& lane) { return !lane.takers.empty(); })) {
    return answer;
  }
  for (const Member& joiner : question.joiners) {
    if (question.max_members != 0 && next.members.size() >= question.max_members) break;
    next.members.push_back(joiner);
    next.members.back().synced = false;
    next.joined.push_back(joiner.incarnation);
    next.admitted_at = next.commits;
  }
  return answer;
}

}  // namespace elastic::rendezvous
