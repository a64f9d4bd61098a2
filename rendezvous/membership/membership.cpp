// The events of a Membership, and the facts that each of them changes.
#include "rendezvous/membership/membership.hpp"

#include <algorithm>

#include "rendezvous/membership/state.hpp"

namespace elastic::rendezvous {

namespace {

/// Bounds the time that a worker reports, so that sums of times do not overflow.
constexpr std::uint64_t kLongestTransferMs = std::uint64_t{1} << 40U;

}  // namespace

Membership::Membership(MembershipOptions options, RecoveredState memory)
    : state_(std::make_unique<State>(options, std::move(memory))) {}
Membership::~Membership() = default;
Membership::Membership(Membership&&) noexcept = default;
Membership& Membership::operator=(Membership&&) noexcept = default;

Decision Membership::decide(const Event& event, TimePoint now) {
  return state_->decide(event, now);
}
TimePoint Membership::next_tick() const {
  return state_->next_tick();
}
Phase Membership::phase() const {
  return state_->phase();
}
const View& Membership::view() const {
  return state_->view();
}
const Member* Membership::member(const std::string& incarnation) const {
  return state_->member(incarnation);
}
bool Membership::leaves(const std::string& incarnation) const {
  return state_->leaves(incarnation);
}
std::size_t Membership::expected_workers() const {
  return state_->expected_workers();
}
StatusReply Membership::status(TimePoint now) const {
  return state_->status(now);
}
double Membership::steps_per_second(TimePoint now) const {
  return state_->steps_per_second(now);
}
bool Membership::joinable() const {
  return state_->joinable();
}
bool Membership::ends_workers() const {
  return state_->ends_workers();
}
bool Membership::stopped() const {
  return state_->stopped();
}
const std::optional<LastWord>& Membership::earlier_end() const {
  return state_->earlier_end();
}

Membership::State::State(MembershipOptions options, RecoveredState memory)
    : options_(options),
      liveness_(options.heartbeat, options.evict_after),
      stalls_(options.evict_after) {
  raise_floor(memory.floor);
  if (memory.end) {
    earlier_end_ = std::move(memory.end);
    earlier_generations_ = floor_;
    memory.view.reset();
    if (memory.stays_over) stay_over(*earlier_end_);
  }
  if (memory.view) {
    recovery_.emplace(Recovery{.journaled = std::move(memory.view)});
    stopping_ = restored_stop_ = memory.requests.stop;
    launched_ = memory.requests.launched;
    removals_.insert(memory.requests.removals.begin(), memory.requests.removals.end());
  }
  set_period(expected_workers());
}

void Membership::State::stay_over(const LastWord& end) {
  over_ = true;
  if (const auto* const failed = std::get_if<Fail>(&end)) {
    failure_ = failed->reason;
    misfit_ = failed->misfit;
    timed_out_ = failed->timed_out.value_or(false);
    mismatch_ = failed->mismatch.value_or(false);
  } else {
    end_ = std::get<Farewell>(end);
  }
}

/// Handles one event. The overload of `on` for the event changes facts; `advance` then applies the
/// rules of rounds.cpp until none changes anything. Last, waiting joiners are told why they wait,
/// and connected members are asked about disconnected ones. Cost: about linear in the number of
/// members; a new view is sent to each of them.
///
/// Events of which each member sends many, or each member one at the same time, mostly change no
/// fact that a rule depends on (`is_routine_`). Their cost does not depend on the number of
/// members. `due_` stays as it is then: it can only be too early.
Decision Membership::State::decide(const Event& event, TimePoint now) {
  now_ = now;
  out_ = {};
  is_routine_ = false;
  std::visit([this](const auto& e) { on(e); }, event);
  if (is_routine_) return std::move(out_);
  advance();
  send_wait_reasons();
  ask_about_absent();
  ask_joiners_about_absent();
  due_ = compute_due();
  joinable_ = !over_ && !ending_ && any_member_ready();
  return std::move(out_);
}

/// A worker registers, for the first time or again. A former member receives the farewell that it
/// missed, and any worker after the end of the job the answer of `tell_that_it_is_over`. Otherwise
/// the server answers with Welcome, and `bring_up_to_date` brings a worker that comes back to the
/// present view.
void Membership::State::on(const Registered& event) {
  const std::string& incarnation = event.registration.incarnation;
  if (tell_that_it_is_over(event)) return;
  if (const auto former = former_.find(incarnation); former != former_.end()) {
    log_reason(describe(incarnation) + " came back, but is no member any more");
    return send(incarnation, former->second);
  }
  if (event.registration.generation != 0 && view_.generation == 0 && !recovery_) start_recovery();
  came_.insert(incarnation);
  Worker& worker = workers_[incarnation];
  if (is_member(incarnation)) by_rank_[rank_of(incarnation)] = &worker;
  worker.registration = event.registration;
  departed_.erase(event.registration.label);
  silent_.forget(event.registration.label);
  worker.ended.clear();
  worker.back_at = now_;
  worker.untold = event.registration.generation != 0;
  if (removals_.erase(incarnation) > 0) worker.removing = true;
  liveness_.watch(incarnation, now_);
  reconnect(incarnation);
  if (worker.arrival == 0) worker.arrival = ++arrivals_;
  if (!first_registered_) first_registered_ = now_;
  if (refuse_other_links(incarnation)) return;
  welcome(incarnation);
  if (recovery_) note_reported_view(incarnation);  // it answers only after its welcome
  if (view_.generation != 0) bring_up_to_date(incarnation);
}

void Membership::State::welcome(const std::string& incarnation) {
  const bool started = view_.generation != 0 || recovery_;
  const bool joining =
      started && !is_member(incarnation) && workers_.at(incarnation).registration.generation == 0;
  send(incarnation,
       Welcome{joining, period_.count(), joining ? next_donor(incarnation) : std::nullopt});
  log_reason(describe(incarnation) + (joining ? " waits to join" : " registered"));
}

void Membership::State::on(const Received& event) {
  if (!workers_.contains(event.incarnation)) {
    if (came_.contains(event.incarnation)) return;  // sent before it knew of its departure
    return log_reason("ignored: a message of unknown worker '" + event.incarnation + "'");
  }
  liveness_.heard(event.incarnation, now_);
  if (is_cut_off()) note_first_connected();
  if (!silent_.empty()) out_.silent = silent_.take(event.incarnation);
  std::visit([&](const auto& message) { on_message(event.incarnation, message); }, event.message);
}

void Membership::State::on(const ConnectionLost& event) {
  const auto found = workers_.find(event.incarnation);
  if (found == workers_.end()) return;
  const Worker& worker = found->second;
  // A leaver departs with its connection. A member that waits at the job's end is awaited like any
  // other, because it may hold a result that others need.
  const bool ended = !worker.ended.empty() || worker.leaving;
  if (is_member(event.incarnation) && !ended) return disconnect(event.incarnation, event.reason);
  if (worker.said_bye) {
    return depart(event.incarnation, worker.unable ? Departure::kFailed : Departure::kLeft,
                  how_it_left(worker));
  }
  depart(event.incarnation, Departure::kFailed,
         "died: " + event.reason + (worker.ended.empty() ? "" : ", " + worker.ended));
}

void Membership::State::on(const ProcessEnded& event) {
  const auto found = workers_.find(event.incarnation);
  if (found == workers_.end()) return;
  if (is_absent(event.incarnation)) return give_up_ended(event.incarnation, event.reason);
  found->second.ended = event.reason;
}

void Membership::State::on(const RemoveWorker& event) {
  const auto refused = [this](const std::string& why) {
    out_.ok = false;
    log_reason(why);
  };
  const std::string rank = std::to_string(event.rank);
  if (over_) return refused("the job is over");
  if (recovery_) {
    return refused("cannot remove rank " + rank +
                   " yet: the server has just been started, and the members come back to it; try "
                   "again in some seconds");
  }
  if (view_.generation == 0) {
    return refused("cannot remove rank " + rank + ": the job has not begun, and has no ranks");
  }
  if (event.rank < 0 || static_cast<std::size_t>(event.rank) >= view_.members.size()) {
    return refused("there is no rank " + rank + ": the job has " +
                   std::to_string(view_.members.size()) + " members");
  }
  const auto found = workers_.find(view_.members[static_cast<std::size_t>(event.rank)].incarnation);
  if (found == workers_.end()) return refused("rank " + rank + " is gone already");
  if (found->second.removing || found->second.leaving) {
    return log_reason("rank " + rank + " is leaving already");
  }
  const auto members = remaining_members();
  const auto staying = std::count_if(members.begin(), members.end(),
                                     [this](const auto& member) { return !leaves(member); });
  // Joiners that wait for room take its place at the same step boundary.
  const auto left = staying - 1 + static_cast<std::ptrdiff_t>(admissible().size());
  if (left < options_.min_np) {
    return refused("cannot remove rank " + rank + ": " + std::to_string(left) +
                   " workers would be left, min_np is " + std::to_string(options_.min_np));
  }
  found->second.removing = true;
  keep_requests();
  log_reason(describe(found->first) + " is to be removed");
  out_.answer =
      "rank " + rank + (without_boundaries() ? " leaves now" : " leaves at the next step boundary");
}

void Membership::State::on(const StopJob& event) {
  if (over_) {
    out_.ok = false;
    return log_reason("the job is over already");
  }
  stopping_ = true;
  restored_stop_ = false;
  launched_ = event.launched;
  log_reason("the job is to stop");
  const bool forming = view_.generation == 0 && !recovery_;
  out_.answer = forming || (!recovery_ && without_boundaries())
                    ? "the job stops now: no worker is in elastic::run"
                    : "the job stops at the next step boundary";
  forming ? stop_without_boundary() : keep_requests();
}

/// Requests of people that are not done yet go into the journal.
void Membership::State::keep_requests() {
  PendingRequests requests{stopping_, launched_, {removals_.begin(), removals_.end()}, {}};
  for (const auto& [incarnation, worker] : workers_) {
    if (worker.removing) requests.removals.push_back(incarnation);
  }
  out_.actions.push_back(JournalRequests{std::move(requests)});
}

/// They were about members of which none is left.
void Membership::State::forget_requests() {
  if (!restored_stop_ && removals_.empty()) return;
  if (restored_stop_) stopping_ = restored_stop_ = false;
  removals_.clear();
  keep_requests();
}

void Membership::State::on(const ExpectWorkers& event) {
  if (view_.generation != 0 || over_) return;  // too late to matter
  options_.initial_np = std::max(event.count, 1);
  set_period(expected_workers());
  log_reason("the first view is to have " + std::to_string(options_.initial_np) + " workers");
}

void Membership::State::on(const Tick& /*event*/) {
  if (!liveness_.tick(due_, now_)) {
    if (round_) round_->started = now_;
    for (auto& [member, absence] : absences_) absence.since = now_;
    log_reason("the server itself was away for too long to judge silence");
  }
  // The connections that still stand are lost as well: their time-outs come later.
  if (!outage_ && !absences_.empty() && liveness_.all_silent(now_))
    begin_outage("no member is heard");
  for (const auto& silent : liveness_.silent(now_)) {
    const auto found = workers_.find(silent.incarnation);
    if (found == workers_.end()) continue;
    if (is_cut_off() && is_member(silent.incarnation)) {
      liveness_.lived(silent.incarnation, now_);  // not known, but its silence proves nothing
      continue;
    }
    if (has_last_state(silent.incarnation) && now_ < liveness_.borne_until(silent.incarnation)) {
      liveness_.lived(silent.incarnation, now_);
      continue;
    }
    evict_silent(silent.incarnation,
                 "no heartbeat for " + std::to_string(silent.silence.count()) + " ms");
  }
  expire();
}

/// Once per heartbeat period the rules are applied even if it tells nothing new.
void Membership::State::on_message(const std::string& from, const Heartbeat& message) {
  is_routine_ = now_ < next_look_;
  const bool of_member = is_member(from);
  if (of_member) {
    Worker& worker = workers_.at(from);
    worker.heartbeat = message;
    worker.untold = false;  // it sends its layout, if it has one, before its first heartbeat
    if (message.figures) worker.figures = message.figures;
  }
  if (!is_routine_) {
    next_look_ = now_ + period_;
    look_for_stalls();
  }
  if (over_ || !of_member) return;
  look_for_early_leavers(message);
  if (message.generation == view_.generation) {
    commits_ = std::max(commits_, message.commits);
    step_rate_.told(commits_, now_);
  }
  const TimePoint active = activity_proof_.told(view_, message, now_);
  // Every member sends heartbeats, and one proves activity of all members: once per heartbeat
  // period is enough.
  if (active == TimePoint::min() || active < active_ + period_) return;
  active_ = active;
  for (const Member& member : view_.members) liveness_.lived(member.incarnation, active);
}

/// A member reports a broken link. A broken link always leads to a view change, in which both ends
/// make a new link. During an immediate round further reports are ignored: they are about the same
/// attempt to link. If the link keeps failing, one of the two ends is removed: a joiner at once, a
/// member after several attempts.
void Membership::State::on_message(const std::string& from, const Suspect& message) {
  if (recovery_) {
    recovery_->suspicions.emplace_back(from, message);
    return log_reason("kept: a suspicion, until the members are known");
  }
  if (message.generation != view_.generation)
    return log_reason("ignored: a suspicion about an old view");
  if (from == message.incarnation || !is_member(from) || !is_member(message.incarnation)) {
    return log_reason("ignored: a suspicion that is not by one member about another");
  }
  const BrokenPair pair{from, message.incarnation};
  if (std::find(broken_.begin(), broken_.end(), pair) == broken_.end()) broken_.push_back(pair);
  if (round_wanted_ || (round_ && !round_->deferred())) {
    return log_reason("ignored: a suspicion, a view change is running");
  }
  round_wanted_ = true;
  causes_.push_back("link between " + describe(from) + " and " + describe(message.incarnation) +
                    " failed: " + message.reason);
  if (refuse_unlinkable_joiner(from, message)) return;
  give_up_unlinkable(from, message.incarnation, message.reason);
}

/// The answer to a deferred freeze: the member will stop at the proposed commit, or has passed it.
/// After a refusal a new round proposes a later commit.
void Membership::State::on_message(const std::string& from, const Promise& message) {
  commits_ = std::max(commits_, message.commits);
  if (!round_ || !round_->deferred() || message.round != round_->number ||
      !round_->expected.contains(from)) {
    return log_reason("ignored: a promise for another round");
  }
  if (message.accepted) {
    is_routine_ = true;
    return;
  }
  // The lead doubles, so that steps shorter than a round trip cannot pass every proposal.
  lead_ = std::min<std::uint64_t>(lead_ * 2, 1U << 20);
  start_round(commits_ + lead_, describe(from) + " had passed the commit proposed before");
}

void Membership::State::on_message(const std::string& from, const Paused& message) {
  commits_ = std::max(commits_, message.commits);
  if (!round_ || !round_->deferred() || message.round != round_->number ||
      !round_->expected.contains(from)) {
    return log_reason("ignored: a pause for another round");
  }
  round_->paused.insert(from);
  is_routine_ = !round_->complete();
}

/// A report: the member is frozen and completes nothing more in this generation. Reports for
/// another round are ignored. The view is decided in `conclude` from the reports of all members.
void Membership::State::on_message(const std::string& from, const Report& message) {
  if (!round_ || round_->deferred() || message.generation != view_.generation ||
      message.round != round_->number || !round_->expected.contains(from)) {
    return log_reason("ignored: a report for another round");
  }
  if (message.lanes.size() != view_.lanes.size()) {
    return evict(from, "reported " + std::to_string(message.lanes.size()) + " lanes of " +
                           std::to_string(view_.lanes.size()));
  }
  commits_ = std::max(commits_, message.commits);
  synced_before_ = synced_before_ || message.synced;
  round_->reports[from] = message;
  is_routine_ = !round_->complete();
}

void Membership::State::on_message(const std::string& from, const Ready& message) {
  Worker& worker = workers_.at(from);
  worker.layout = message.layout;
  worker.transfer = Milliseconds(std::min<std::uint64_t>(message.transfer_ms, kLongestTransferMs));
  worker.told_to_wait = false;
  if (view_.generation != 0) compare_layout(from);
  is_routine_ = joinable_ && !over_ && is_member(from);  // others were ready before
}

/// A worker wants to go: because the job is at its end (`done`), because it cannot continue
/// (`unable`), or because it chose to. With `failure` and without `unable` the whole job fails. The
/// members that say `done` first wait for the others for `farewell_grace`.
void Membership::State::on_message(const std::string& from, const Bye& message) {
  Worker& worker = workers_.at(from);
  if (!is_member(from) && !(recovery_ && worker.registration.generation != 0)) {
    log_reason(describe(from) + " left before it was a member");
    send(from, Farewell{Farewell::Reason::kDone, "left before it was a member"});
    worker.unable = message.unable;
    worker.why = message.failure;
    if (worker.unable) note_departed(worker, "unable");
    return depart(from, Departure::kLeft, "left");
  }
  if (!message.failure.empty() && !message.unable) {
    mismatch_ = true;  // where states or options differ, compare_layout finds it
    return fail(message.failure, true);
  }
  if (worker.said_bye) return;
  worker.said_bye = true;
  worker.done = message.done;
  worker.unable = message.unable;
  worker.why = message.failure;
  if (message.unable && message.setup.value_or(false)) ++badly_started_;
  log_reason(describe(from) + (message.done     ? " is at the job's end"
                               : message.unable ? " cannot go on"
                                                : " wants to leave"));
  if (!message.done) {
    worker.leaving = true;
  } else {
    ending_ = true;
    if (!grace_ends_) grace_ends_ = now_ + options_.farewell_grace;
  }
}

/// A worker that has come back tells the view that it was asked for.
void Membership::State::on_message(const std::string& from, const KnownView& message) {
  const std::uint64_t generation = message.view->generation;
  if (!recovery_ || generation != workers_.at(from).registration.generation) {
    return log_reason("ignored: a view that was not asked for");
  }
  recovery_->told.try_emplace(generation, message.view);
}

/// A member, or a joiner that was asked, found that the process of a member has ended. Ignored if
/// that worker has come back meanwhile, which proves the contrary.
void Membership::State::on_message(const std::string& from, const Gone& message) {
  const auto absence = absences_.find(message.incarnation);
  if (absence == absences_.end() || (!is_member(from) && absence->second.asked_joiner != from)) {
    is_routine_ = true;  // several members are asked
    return log_reason("ignored: word of the end of a worker that is not disconnected");
  }
  give_up_ended(message.incarnation, describe(from) + " says: " + message.reason);
}

template <typename Other>
void Membership::State::on_message(const std::string& from, const Other& /*message*/) {
  evict(from, "sent a message that is not a worker's to send");
}

}  // namespace elastic::rendezvous
