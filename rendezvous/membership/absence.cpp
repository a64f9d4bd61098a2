// Disconnected members: members without a connection that are not known to be dead.
//
// A lost connection is only a suspicion: NAT tables, proxies and tunnels reset connections of
// healthy processes. Such an absence ends in one of three ways: the member registers again, its
// process is proved to have ended, or its time runs out.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "rendezvous/membership/state.hpp"

namespace elastic::rendezvous {
namespace {

/// Members of the same host, and of others, that are asked about a disconnected one.
constexpr std::size_t kAskedOfEach = 4;

}  // namespace

/// Marks a member as disconnected. A round begins at once, as after a death, and waits for the
/// outcome: if the member is dead, no time is lost. If most members are disconnected at the same
/// time, this is an outage of the network or the server, and the members train on instead. So it is
/// if no member has been heard for long: their connections are lost one after the other.
void Membership::State::disconnect(const std::string& incarnation, const std::string& why) {
  if (!absences_.try_emplace(incarnation, Absence{now_, why}).second) return;
  const bool all_silent = liveness_.all_silent(now_);
  liveness_.forget(incarnation);
  log_reason(describe(incarnation) + " is disconnected: " + why);
  if (all_silent || 2 * absences_.size() > view_.members.size()) {
    begin_outage(all_silent ? "no member is heard" : "most connections are lost");
  }
  note_first_connected();
}

void Membership::State::begin_outage(const std::string& reason) {
  if (outage_) return;
  outage_ = Outage{now_, std::nullopt};
  log_reason(reason + ": the members are awaited");
}

/// Ends an absence: the member has registered again. Messages in either direction may be lost;
/// `bring_up_to_date` repeats what matters.
void Membership::State::reconnect(const std::string& incarnation) {
  for (auto& [member, absence] : absences_) {
    const bool may_be_lost = absence.asked.erase(incarnation) > 0;
    if (may_be_lost || absence.asked.size() < kAskedOfEach) absence.ask = true;
  }
  absences_.erase(incarnation);
  note_first_connected();
  end_outage_if_over();
}

/// In an outage, notes when the first member is heard again: the others' time begins then. A
/// connection that still stands proves nothing.
void Membership::State::note_first_connected() {
  if (!outage_) return;
  const bool heard = any_remaining([this](const Worker& worker) {
    const std::string& member = worker.registration.incarnation;
    return !is_absent(member) && liveness_.heard_at(member) >= outage_->since;
  });
  if (!heard) {
    outage_->first_connected.reset();
  } else if (!outage_->first_connected) {
    outage_->first_connected = now_;
    if (round_) round_->started = now_;  // reports are on their way again
  }
}

/// A member that kept its connection may not have got the freeze of a round yet.
void Membership::State::end_outage_if_over() {
  if (!outage_ || !absences_.empty()) return;
  outage_.reset();
  if (round_) round_->started = now_;
}

/// When the member is given up without proof of its death.
TimePoint Membership::State::awaited_until(const Absence& absence) const {
  if (outage_ && outage_->first_connected) {
    return *outage_->first_connected + return_window();
  }
  if (outage_) return outage_->since + options_.outage_window;
  const Duration grace =
      std::max<Duration>(options_.disconnect_grace, silence_limit()) + liveness_.slack(now_);
  return absence.since + grace;
}

/// Gives up a disconnected member. The reports of the others stay valid: they are binding.
void Membership::State::give_up_absent(const std::string& incarnation, Departure how,
                                       const std::string& what) {
  Worker& worker = workers_.at(incarnation);
  if (round_) {
    round_->expected.erase(incarnation);
    round_->paused.erase(incarnation);
    round_->reports.erase(incarnation);
  }
  if (worker.said_bye) {
    depart(incarnation, worker.unable ? Departure::kFailed : Departure::kLeft, how_it_left(worker));
  } else {
    worker.why = what;
    depart(incarnation, how, (how == Departure::kEvicted ? "was given up: " : "died: ") + what);
  }
}

/// Gives up a disconnected member with proof that its process has ended.
void Membership::State::give_up_ended(const std::string& incarnation, const std::string& proof) {
  give_up_absent(incarnation, Departure::kFailed, absences_.at(incarnation).why + ", " + proof);
}

/// Gives up the members that have not come back in time.
void Membership::State::expire_absences() {
  std::vector<std::string> late;
  for (const auto& [member, absence] : absences_) {
    if (now_ >= awaited_until(absence)) late.push_back(member);
  }
  for (const std::string& member : late) {
    const auto waited = std::chrono::duration_cast<Milliseconds>(now_ - absences_.at(member).since);
    const std::string why = "its connection was lost (" + absences_.at(member).why +
                            "), and it did not come back within " + std::to_string(waited.count()) +
                            " ms";
    if (!workers_.at(member).said_bye) note_silent(view_.members[rank_of(member)], why);
    give_up_absent(member, Departure::kEvicted, why);
  }
}

/// Asks some connected members whether the process of a disconnected one has ended, and another
/// when one of these is gone. Not while most are disconnected: then the network or the server has
/// failed. Cost: a few messages for each absence, and a look at all members.
void Membership::State::ask_about_absent() {
  if (over_ || 2 * absences_.size() > view_.members.size()) return;
  std::map<std::string, Check> checks;
  for (auto& [member, absence] : absences_) {
    const std::size_t gone =
        std::erase_if(absence.asked, [this](const std::string& one) { return !is_connected(one); });
    if (!std::exchange(absence.ask, false) && gone == 0) continue;
    for (const std::string& asked : members_to_ask(member)) {
      if (absence.asked.insert(asked).second) checks[asked].incarnations.push_back(member);
    }
  }
  for (auto& [asked, check] : checks) send(asked, std::move(check));
}

/// Asks a joiner of the host of each disconnected member, which can try its local socket. Also
/// while most are disconnected: where the hosts of all were started again, joiners alone can tell
/// that from a failure of the network.
void Membership::State::ask_joiners_about_absent() {
  if (over_ || absences_.empty()) return;
  std::map<std::string, std::string> joiners;  // by host
  for (const auto& [incarnation, worker] : workers_) {
    if (is_member(incarnation)) continue;
    joiners.try_emplace(worker.registration.endpoints.host, incarnation);
  }
  if (joiners.empty()) return;
  std::map<std::string, Check> checks;
  for (auto& [incarnation, absence] : absences_) {
    const Member& member = view_.members[rank_of(incarnation)];
    const auto joiner = joiners.find(member.endpoints.host);
    if (joiner == joiners.end() || workers_.contains(absence.asked_joiner)) continue;
    absence.asked_joiner = joiner->second;
    Check& check = checks[joiner->second];
    check.incarnations.push_back(incarnation);
    if (!check.members) check.members.emplace();
    check.members->push_back(member);
  }
  for (auto& [asked, check] : checks) send(asked, std::move(check));
}

/// Some of the member's host, which can try its local socket, and some of others, the next in the
/// order of ranks.
std::set<std::string> Membership::State::members_to_ask(const std::string& absent) const {
  std::set<std::string> chosen;
  std::size_t on_host = 0;
  std::size_t elsewhere = 0;
  const std::size_t rank = rank_of(absent);
  const std::size_t count = view_.members.size();
  for (std::size_t i = 1; i < count && on_host + elsewhere < 2 * kAskedOfEach; ++i) {
    const Member& member = view_.members[(rank + i) % count];
    const bool same_host = member.endpoints.host == view_.members[rank].endpoints.host;
    std::size_t& asked = same_host ? on_host : elsewhere;
    if (asked == kAskedOfEach || !is_connected(member.incarnation)) continue;
    ++asked;
    chosen.insert(member.incarnation);
  }
  return chosen;
}

bool Membership::State::is_connected(const std::string& incarnation) const {
  return workers_.contains(incarnation) && !is_absent(incarnation);
}

bool Membership::State::is_absent(const std::string& incarnation) const {
  return absences_.contains(incarnation);
}

/// Whether all expected members have answered and none of them is disconnected: a view is decided
/// only then.
bool Membership::State::round_is_complete() const {
  return round_->complete() &&
         std::none_of(absences_.begin(), absences_.end(), [this](const auto& absence) {
           return round_->expected.contains(absence.first);
         });
}

}  // namespace elastic::rendezvous
