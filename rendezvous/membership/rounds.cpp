// Rounds: attempts at a view change, and the rules that start and conclude them.
#include <algorithm>
#include <memory>
#include <utility>

#include "rendezvous/membership/decide_view.hpp"
#include "rendezvous/membership/state.hpp"

namespace elastic::rendezvous {

/// Whether all reporting members have stopped after the same step, so that joiners can be admitted.
bool Membership::State::Round::at_boundary() const {
  return !reports.empty() && std::all_of(reports.begin(), reports.end(), [this](const auto& one) {
    return one.second.at_boundary && one.second.commits == reports.begin()->second.commits;
  });
}

/// Applies the rules until none of them changes anything: recovery after a restart, the formation
/// of the first view, or the view changes of `advance_once`.
void Membership::State::advance() {
  while (!over_) {
    const bool changed = recovery_               ? try_recover()
                         : view_.generation == 0 ? try_form()
                                                 : advance_once();
    if (!changed) return;
  }
}

/// The rules of view changes, in the order of their urgency. Applies the first that fits; true if
/// it may make another apply.
///
/// - The job is over: end it.
/// - An immediate round is running: see advance_immediate_round.
/// - A member is gone, disconnected or leaving, or a link is broken: start an immediate round.
/// - A deferred round is running: see advance_deferred_round.
/// - The job is to stop, or joiners or removals wait for a step boundary: start a deferred round.
bool Membership::State::advance_once() {
  if (end_if_over()) return false;
  if (round_ && !round_->deferred()) return advance_immediate_round();
  if (wants_immediate()) {
    start_round(0, !causes_.empty()     ? causes_.back()
                   : !absences_.empty() ? describe(absences_.begin()->first) + " is disconnected"
                                        : "a member leaves");
    return true;
  }
  if (round_) return advance_deferred_round();
  if (!wants_boundary()) return false;
  start_round(commits_ + lead_, stopping_ ? "the job is to stop" : "the members are to change");
  return true;
}

/// Concludes an immediate round when all expected members have reported. The death of an expected
/// member starts another round without it. At a step boundary with too few members the round stays
/// open and waits for joiners.
bool Membership::State::advance_immediate_round() {
  if (round_->lost_one) {
    start_round(0, causes_.back());
    return true;
  }
  if (!round_is_complete() || (round_->at_boundary() && must_wait_for_joiners())) return false;
  conclude();
  return true;
}

/// Concludes a deferred round when all training threads have paused. An immediate round follows,
/// because operations of other threads go on: their positions count only once the lanes are frozen.
bool Membership::State::advance_deferred_round() {
  if (!round_is_complete()) return false;
  if (stopping_) {
    finish(Farewell::Reason::kStopped, "the job was stopped on request");
    return false;
  }
  if (must_wait_for_joiners()) return false;
  start_round(0, "all members have stopped after commit " + std::to_string(round_->at_commit));
  return true;
}

/// Whether the members at this step boundary have to wait for joiners, because they are too few.
/// They do not wait if one of them is leaving.
bool Membership::State::must_wait_for_joiners() const {
  const bool leaving =
      std::any_of(round_->expected.begin(), round_->expected.end(),
                  [this](const std::string& member) { return workers_.at(member).leaving; });
  return view_.below_minimum && !leaving && starved(round_->expected.size() + admissible().size());
}

bool Membership::State::wants_immediate() const {
  if (round_wanted_ || recount_ || count_remaining() != view_.members.size()) return true;
  // In an outage the members train on: a connected member could not agree with the others.
  if (!absences_.empty() && !outage_) return true;
  const bool at_once = without_boundaries();
  return !handover_until_ && any_remaining([&](const Worker& worker) {
    return worker.leaving || (worker.removing && at_once);
  });
}

bool Membership::State::wants_boundary() const {
  // A member that has said Bye commits no more steps, so the others cannot reach a boundary with
  // it.
  if (!any_member_ready() || any_member_said_bye()) return false;
  if (stopping_ || view_.below_minimum) return true;
  if (!admissible().empty() && room() > 0) return true;
  return any_remaining([](const Worker& worker) { return worker.removing; });
}

/// Starts a round, which replaces the one before: sends a freeze to every connected member. Cost:
/// one message to each member, and one answer of each.
void Membership::State::start_round(std::uint64_t at_commit, const std::string& reason) {
  const std::vector<std::string> members = remaining_members();
  round_ = Round{++rounds_, at_commit, now_, {members.begin(), members.end()}, {}, {}, false};
  send_to_all(members, Freeze{view_.generation, round_->number, at_commit, reason});
  log_reason("round " + std::to_string(round_->number) +
             (at_commit == 0 ? " freezes at once"
                             : " asks to stop at commit " + std::to_string(at_commit)) +
             ": " + reason);
}

/// Withdraws removals that would leave fewer than `min_np` workers, because of deaths since they
/// were granted.
void Membership::State::withdraw_removals() {
  std::vector<Worker*> removing;
  int staying = static_cast<int>(admissible().size());  // they come at the same boundary
  for (const auto& entry : round_->reports) {
    Worker& worker = workers_.at(entry.first);
    if (worker.removing && !worker.leaving) {
      removing.push_back(&worker);
    } else if (!worker.leaving) {
      ++staying;
    }
  }
  const bool withdraws = !removing.empty() && staying < options_.min_np;
  for (; !removing.empty() && staying < options_.min_np; ++staying, removing.pop_back()) {
    removing.back()->removing = false;
    log_reason(describe(removing.back()->registration.incarnation) +
               " is not removed: fewer than min_np workers would be left");
  }
  if (withdraws) keep_requests();
}

/// Where all members that have the state are to be removed: the first of them. It stays for one
/// more view, to give the state to joiners, or to members that lack it. Otherwise null.
const Membership::State::Worker* Membership::State::last_with_state() const {
  const Worker* kept = nullptr;
  bool others = !admissible().empty();
  for (const Member& member : view_.members) {
    const auto report = round_->reports.find(member.incarnation);
    if (report == round_->reports.end()) continue;
    const Worker& worker = workers_.at(member.incarnation);
    const bool stays = !worker.removing && !worker.leaving;
    if (stays && report->second.synced) return nullptr;
    others |= stays;
    const bool may_stay = worker.removing && !worker.leaving && report->second.synced;
    if (kept == nullptr && may_stay) kept = &worker;
  }
  return others ? kept : nullptr;
}

/// Decides the next view from the reports of an immediate round.
///
/// - Leavers are left out. Members to be removed are too, at a step boundary or if no member
///   reaches one; see last_with_state for the exception.
/// - At a step boundary joiners are admitted, as far as max_np allows.
/// - decide_view chooses the members, and what becomes of the operations in flight.
/// - The job ends if no member is left, or none that has the state.
/// - If a leaver has to stay to hand a result over, it keeps its place for this view, and the next
///   immediate round for leavers waits until the hand-over has had time.
void Membership::State::conclude() {
  withdraw_removals();
  ViewQuestion question{view_, std::max(view_.generation, floor_) + 1,    {},
                        {},    static_cast<std::size_t>(options_.max_np), gone_by_choice_};
  const bool at_boundary = round_->at_boundary();
  const bool remove_now = at_boundary || without_boundaries();
  const Worker* const kept = at_boundary ? last_with_state() : nullptr;
  if (kept != nullptr && options_.max_np > 0) ++question.max_members;
  for (const Member& member : view_.members) {
    const auto report = round_->reports.find(member.incarnation);
    if (report == round_->reports.end()) continue;
    const Worker& worker = workers_.at(member.incarnation);
    const bool removed = worker.removing && remove_now && &worker != kept;
    question.reporters.push_back({member, report->second, worker.leaving || removed});
  }
  if (at_boundary) {
    for (const Worker* worker : admissible()) {
      const Register& r = worker->registration;
      question.joiners.push_back({r.incarnation, r.endpoints, r.pid, r.label, false});
    }
  }
  ViewAnswer answer = decide_view(question);
  for (const auto& evicted : answer.evicted) evict(evicted.incarnation, evicted.reason);
  View& next = answer.view;
  if (next.members.empty()) return end("all members have left");
  if (synced_before_ && std::none_of(next.members.begin(), next.members.end(),
                                     [](const Member& member) { return member.synced; })) {
    return fail("the last worker that had the state is gone");
  }
  next.below_minimum = starved(next.members.size());
  if (next.below_minimum && !layout_) {
    for (const std::string& left : next.left) {
      if (workers_.contains(left)) release(left);
    }
    return fail_starved(next.members.size());
  }
  if (!next.below_minimum) {
    below_since_.reset();
  } else if (!below_since_) {
    below_since_ = now_;
  }
  handovers_ = answer.retained.empty() ? 0 : handovers_ + 1;
  handover_until_.reset();
  // An immediate freeze would interrupt the hand-over for which they were kept.
  if (handovers_ > 0)
    handover_until_ = now_ + options_.farewell_grace * (1 << std::min(handovers_ - 1, 10));
  announce(std::move(next));
}

/// Makes `next` durable, then announces it: the order of the actions is the order of these steps.
/// Members that left are released. Cost: one journal entry with fsync, the view to each joiner, and
/// what has changed to each other member.
void Membership::State::announce(View next) {
  for (const std::string& left : next.left) note_finished(left);
  next.cause = cause_of(next);
  next.broken = std::exchange(broken_, {});
  set_period(next.members.size());
  out_.actions.push_back(Journal{next});
  std::vector<std::string> of_this_view;  // they have reported in it, so they know it
  std::vector<std::string> others;
  auto change = change_between(view_, next);
  for (const Member& member : next.members) {
    (change && is_member(member.incarnation) ? of_this_view : others).push_back(member.incarnation);
  }
  if (change)
    send_to_all(std::move(of_this_view), AnnounceChange{*std::move(change), period_.count()});
  send_to_all(std::move(others), announcement_of(next));
  for (std::size_t lane = 0; lane < view_.lanes.size(); ++lane) {
    if (next.lanes[lane].position > view_.lanes[lane].position) forgive_broken_links(next.broken);
  }
  if (view_.generation != 0) ++view_changes_;
  enter(std::move(next));
  for (const std::string& left : view_.left) {
    if (workers_.contains(left)) release(left);
  }
  log_reason("view " + std::to_string(view_.generation) + " with " +
             std::to_string(view_.members.size()) + " members: " + view_.cause);
  round_.reset();
  causes_.clear();
  gone_by_choice_.clear();
  perhaps_alive_.clear();
  round_wanted_ = false;
  recount_ = false;
  lead_ = 1;
  commits_ = std::max(commits_, view_.commits);
  for (const Member& member : view_.members) synced_before_ = synced_before_ || member.synced;
}

Announce Membership::State::announcement_of(const View& view) const {
  return {std::make_shared<const View>(view), period_.count()};
}

void Membership::State::enter(View view) {
  view_ = std::move(view);
  ranks_.clear();
  by_rank_.clear();
  for (std::size_t rank = 0; rank < view_.members.size(); ++rank) {
    ranks_.emplace(view_.members[rank].incarnation, rank);
    const auto worker = workers_.find(view_.members[rank].incarnation);
    by_rank_.push_back(worker == workers_.end() ? nullptr : &worker->second);
  }
  entered_at_ = now_;
  set_period(view_.members.size());
}

std::string Membership::State::cause_of(const View& next) const {
  std::string cause;
  const auto add = [&](const std::string& text) { cause += (cause.empty() ? "" : "; ") + text; };
  for (const std::string& text : causes_) add(text);
  if (view_.generation == 0) return cause;
  for (const std::string& left : next.left) {
    const auto leaver = workers_.find(left);
    if (leaver == workers_.end()) continue;  // told by `depart`
    add(describe(left) + " " +
        (leaver->second.said_bye ? how_it_left(leaver->second) : "was removed on request"));
  }
  for (const std::string& joined : next.joined) add(describe(joined) + " joined");
  return cause.empty() ? "no member changed" : cause;
}

}  // namespace elastic::rendezvous
