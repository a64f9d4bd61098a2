#include "rendezvous/membership/early_leavers.hpp"

#include <algorithm>
#include <utility>

#include "rendezvous/membership/state.hpp"

namespace elastic::rendezvous {

namespace {

bool is_beyond(const EarlyLeavers::Reached& member, const EarlyLeavers::Reached& leaver,
               bool by_commits) {
  if (by_commits) return member.commits > leaver.commits;
  const std::size_t lanes = std::min(member.positions.size(), leaver.positions.size());
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    if (member.positions[lane] > leaver.positions[lane]) return true;
  }
  return false;
}

}  // namespace

std::vector<EarlyLeavers::Leaver> EarlyLeavers::passed_by(const Reached& member, bool by_commits) {
  const auto early = std::stable_partition(
      finished_.begin(), finished_.end(),
      [&](const Leaver& leaver) { return !is_beyond(member, leaver.reached, by_commits); });
  std::vector<Leaver> passed(std::make_move_iterator(early),
                             std::make_move_iterator(finished_.end()));
  finished_.erase(early, finished_.end());
  return passed;
}

std::string EarlyLeavers::describe(const Leaver& leaver, bool by_commits) {
  if (!by_commits) return "it called elastic::shutdown, and the others went on with collectives";
  const std::uint64_t steps = leaver.reached.commits;
  if (steps == 0)
    return "it called elastic::shutdown before its first step, and the others trained";
  return "its elastic::run ended after " + std::to_string(steps) +
         (steps == 1 ? " step" : " steps") + ", and the others trained on";
}

/// A member leaves. If it said that the job is at its end, remembers its progress, from its report
/// in this round or else from its last heartbeat.
void Membership::State::note_finished(const std::string& incarnation) {
  const auto found = workers_.find(incarnation);
  if (found == workers_.end() || !found->second.done) return;
  const Worker& worker = found->second;
  EarlyLeavers::Reached reached{worker.heartbeat.commits, worker.heartbeat.positions};
  if (round_) {
    const auto report = round_->reports.find(incarnation);
    if (report != round_->reports.end()) {
      reached.commits = std::max(reached.commits, report->second.commits);
      reached.positions.clear();
      for (const Report::Lane& lane : report->second.lanes) {
        reached.positions.push_back(lane.position);
      }
    }
  }
  early_leavers_.left({worker.registration.label, describe(incarnation), std::move(reached)});
}

/// A heartbeat may prove that the job was not at its end when others left. Then the rules of a
/// running job apply again: there is a minimum, and workers may join.
void Membership::State::look_for_early_leavers(const Heartbeat& heartbeat) {
  if (!early_leavers_.any() || heartbeat.generation != view_.generation) return;
  const bool by_commits = layout_.has_value();
  const auto early = early_leavers_.passed_by({heartbeat.commits, heartbeat.positions}, by_commits);
  if (early.empty()) return;
  is_routine_ = false;
  ending_ = std::any_of(workers_.begin(), workers_.end(),
                        [](const auto& entry) { return entry.second.done; });
  for (const EarlyLeavers::Leaver& leaver : early) {
    const std::string how = EarlyLeavers::describe(leaver, by_commits);
    const auto departed = departed_.find(leaver.label);
    if (departed != departed_.end() && departed->second.how == "finished") {
      departed->second.how = "early";
      departed->second.why = how;
    }
    left_early_ += "; " + leaver.name + " ended early: " + how;
    std::string text = leaver.name + " ended early: " + how;
    const std::size_t members = count_remaining();
    if (starved(members)) {
      causes_.push_back(text);
      recount_ = true;
      text += "; " + std::to_string(members) + " of at least " + std::to_string(options_.min_np) +
              " workers (min_np) are left";
      if (layout_) {
        text += ": from its next step boundary the job waits " +
                std::to_string(options_.below_minimum_timeout.count()) +
                " ms for more, and then fails";
      }
    }
    out_.warnings.push_back(text);
    std::vector<std::string> wanted_by = remaining_members();
    std::erase_if(wanted_by, [this](const std::string& member) {
      return !workers_.at(member).registration.stall;
    });
    send_to_all(std::move(wanted_by), Warning{text});
  }
}

}  // namespace elastic::rendezvous
