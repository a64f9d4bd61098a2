// Members whose connection is lost.
//
// A lost connection is a suspicion only: NAT tables, proxies and tunnels reset connections of
// processes that are well. The member comes back by itself, or something proves that its process
// has ended, or its time passes.
#include <algorithm>

#include "rendezvous/membership/state.hpp"

namespace elastic::rendezvous {

/// The others stand still until it is known what becomes of this one, as if it had died: were it
/// dead, they would have lost time otherwise.
void Membership::State::disconnect(const std::string& incarnation, const std::string& why) {
  if (!absences_.try_emplace(incarnation, Absence{now_, why, {}}).second) return;
  liveness_.forget(incarnation);
  note(describe(incarnation) + " is disconnected: " + why);
  if (!outage_ && 2 * absences_.size() > view_.members.size()) {
    outage_ = Outage{now_, std::nullopt};
    note("most connections are lost: the members are awaited");
  }
  note_company();
}

/// It has registered again. What was said to it or by it meanwhile may be lost.
void Membership::State::reconnect(const std::string& incarnation) {
  for (auto& [member, absence] : absences_) absence.asked.erase(incarnation);
  absences_.erase(incarnation);
  note_company();
  if (absences_.empty()) outage_.reset();
}

/// Since when somebody is connected while most are not.
void Membership::State::note_company() {
  if (!outage_) return;
  const std::vector<std::string> members = remaining_members();
  const bool nobody = std::all_of(members.begin(), members.end(),
                                  [this](const std::string& one) { return is_absent(one); });
  if (nobody) {
    outage_->first_connected.reset();
  } else if (!outage_->first_connected) {
    outage_->first_connected = now_;
  }
}

/// When the member is given up without any proof.
TimePoint Membership::State::awaited_until(const Absence& absence) const {
  if (outage_ && outage_->first_connected) {
    return *outage_->first_connected + options_.return_window;
  }
  if (outage_) return outage_->since + options_.outage_window;
  const Duration grace =
      std::max<Duration>(options_.disconnect_grace, options_.evict_after) + liveness_.slack(now_);
  return absence.since + grace;
}

/// The reports of the others stay valid: they are promises.
void Membership::State::give_up_absent(const std::string& incarnation, const std::string& why) {
  const Worker& worker = workers_.at(incarnation);
  const std::string how = absences_.at(incarnation).why + ", " + why;
  if (round_) {
    round_->expected.erase(incarnation);
    round_->paused.erase(incarnation);
    round_->reports.erase(incarnation);
  }
  if (worker.said_bye) {
    depart(incarnation, worker.unable ? How::kFailed : How::kLeft, how_it_left(worker));
  } else {
    depart(incarnation, How::kFailed, "died: " + how);
  }
}

void Membership::State::expire_absences() {
  std::vector<std::string> late;
  for (const auto& [member, absence] : absences_) {
    if (now_ >= awaited_until(absence)) late.push_back(member);
  }
  for (const std::string& member : late) {
    const auto waited = std::chrono::duration_cast<Milliseconds>(now_ - absences_.at(member).since);
    give_up_absent(member,
                   "and it did not come back within " + std::to_string(waited.count()) + " ms");
  }
}

/// Asks each member that is connected about those that are not, once.
void Membership::State::ask_about_absent() {
  if (absences_.empty() || over_) return;
  for (const std::string& member : remaining_members()) {
    if (is_absent(member)) continue;
    Check check;
    for (auto& [other, absence] : absences_) {
      if (absence.asked.insert(member).second) check.incarnations.push_back(other);
    }
    if (!check.incarnations.empty()) send(member, std::move(check));
  }
}

bool Membership::State::is_absent(const std::string& incarnation) const {
  return absences_.contains(incarnation);
}

/// A view is not decided before it is known of each member whether it is there.
bool Membership::State::round_is_complete() const {
  return round_->complete() &&
         std::none_of(absences_.begin(), absences_.end(), [this](const auto& absence) {
           return round_->expected.contains(absence.first);
         });
}

}  // namespace elastic::rendezvous
