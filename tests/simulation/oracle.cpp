// What must hold in every run, judged with knowledge of all workers that the server does not have.

#include <algorithm>
#include <set>

#include "world.hpp"

namespace elastic::simulation {

using namespace rendezvous;

namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> incarnations(const View& view) {
  std::vector<std::string> names;
  for (const Member& member : view.members) names.push_back(member.incarnation);
  return names;
}

}  // namespace

void World::wrong(const std::string& what) {
  wrong_ += what + "\n";
}

void World::check_view(const View& next) {
  const std::string which = "view " + std::to_string(next.generation);
  if (next.generation != generation_ + 1) wrong(which + " follows " + std::to_string(generation_));
  generation_ = next.generation;
  const std::vector<std::string> members = incarnations(next);
  if (std::set<std::string>(members.begin(), members.end()).size() != members.size()) {
    wrong(which + " has a member twice");
  }
  if (scenario_.options.max_np > 0 &&
      members.size() > static_cast<std::size_t>(scenario_.options.max_np)) {
    wrong(which + " has more members than max_np");
  }
  for (const std::string& lost : next.lost) {
    if (!workers_.at(lost)->faulted()) wrong(which + " lost " + lost + ", which was well");
  }
  for (const std::string& left : next.left) {
    if (!workers_.at(left)->asked_to_leave() && removed_.count(left) == 0) {
      wrong(which + " let " + left + " go, which had not asked to");
    }
  }
  for (const Member& member : next.members) {
    // What a joiner starts from must be where all the others stand.
    const bool old = !contains(next.joined, member.incarnation);
    if (next.joined.empty() || next.generation == 1 || !old) continue;
    if (workers_.at(member.incarnation)->commits() != next.commits) {
      wrong(which + " admits joiners though " + member.incarnation + " is in another step");
    }
  }
  if (next.generation == 1) return;
  for (std::size_t lane = 0; lane < kLanes; ++lane) check_lane(next, lane);
}

/// The decision agrees with what the members really have. They stand still while it is taken.
void World::check_lane(const View& next, std::size_t lane) {
  const LaneDecision& decision = next.lanes[lane];
  const std::string where =
      "view " + std::to_string(next.generation) + " lane " + std::to_string(lane) + ": ";
  for (const std::string& left : next.left) {
    const ModelWorker& leaver = *workers_.at(left);
    if (leaver.faulted() || leaver.position(lane) <= decision.position) continue;
    wrong(where + left + " left with a result that the others lack");
  }
  for (const Member& member : next.members) {
    const std::string& name = member.incarnation;
    if (contains(next.joined, name)) continue;
    const ModelWorker& worker = *workers_.at(name);
    const std::uint64_t position = worker.position(lane);
    const bool takes = contains(decision.takers, name);
    if (worker.generation() != view_.generation) {
      // It has not even heard of the view before, so it cannot have reported in it.
      wrong(where + name + " is of generation " + std::to_string(worker.generation()));
    }
    if (position + (takes ? 1 : 0) != decision.position) {
      wrong(where + name + " at " + std::to_string(position) + " cannot come to " +
            std::to_string(decision.position));
    }
    if (!decision.takers.empty() && takes == contains(decision.holders, name)) {
      wrong(where + name + " must either take or hold");
    }
    const bool root_gone =
        !takes && !worker.needs(lane).empty() && !contains(incarnations(next), worker.needs(lane));
    if (root_gone && !decision.lost) wrong(where + name + " waits for a root that is gone");
  }
}

/// Nothing that a member completed is ever done again by another.
void World::check_agreement() {
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    std::map<std::uint64_t, std::pair<std::string, Outcome>> first;
    for (const std::string& name : incarnations(view_)) {
      for (const auto& [position, outcome] : workers_.at(name)->outcomes(lane)) {
        const auto& [other, its] = first.try_emplace(position, name, outcome).first->second;
        if (its == outcome) continue;
        wrong(name + " and " + other + " differ in operation " + std::to_string(position) +
              " of lane " + std::to_string(lane));
      }
    }
  }
}

void World::check_end() {
  check_agreement();
  std::size_t well = 0;
  std::size_t synced = 0;
  std::uint64_t furthest = 0;
  for (const Member& member : view_.members) {
    const ModelWorker& worker = *workers_.at(member.incarnation);
    furthest = std::max(furthest, worker.commits());
    if (worker.faulted()) continue;
    ++well;
    synced += worker.synced() ? 1U : 0U;
  }
  if (membership_.phase() == Phase::kFailed) {
    const bool starved = well < static_cast<std::size_t>(scenario_.options.min_np);
    const bool never_formed = generation_ == 0;
    const bool left_too_few = scenario_.options.min_np > 1 && scenario_.early_leavers > 0;
    if (!starved && !never_formed && !left_too_few && synced > 0) {
      wrong("failed with " + std::to_string(well) + " members that are well: " + failure_);
    }
    return;
  }
  const bool cut_short = scenario_.stopped || scenario_.early_leavers > 0 || well == 0;
  if (!cut_short && furthest != scenario_.steps) {
    wrong("done after " + std::to_string(furthest) + " of " + std::to_string(scenario_.steps) +
          " steps");
  }
}

}  // namespace elastic::simulation
