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

/// Operations that `reporter` lacks and nobody keeps: only the last result of a lane is kept.
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
    // What a taker needed is settled: the operation it was in is committed.
    if (!reported.needs.empty() && !incarnations.contains(reported.needs)) decision.lost = true;
  }
  if (decision.takers.empty()) decision.holders.clear();
  return decision;
}

/// Those that can be members, without leavers unless they are needed.
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
  if (next.members.empty()) return answer;  // A joiner alone has nobody to take the state from.
  // A joiner starts behind results that it does not hold: while some member lacks one, it would be
  // taken for a holder if the holders died. It is admitted once all members have them.
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
