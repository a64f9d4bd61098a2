#include <algorithm>

#include "rendezvous/membership/state.hpp"

namespace elastic::rendezvous {
namespace {

/// View changes for broken links, without any operation completed in between, before somebody who
/// cannot be linked with has to go. Two that never reach each other would go on for ever.
constexpr int kRelinkAttempts = 4;
/// And at least so long: after a machine stood still attempts may fail in quick succession, for
/// whoever is the last to notice that there is a new view.
constexpr Milliseconds kRelinkPatience{5000};

}  // namespace

/// `incarnation` is gone. What that means for the view is drawn by `advance`.
void Membership::State::depart(const std::string& incarnation, How how, const std::string& what) {
  const std::string text = describe(incarnation) + " " + what;
  note(text);
  if (is_member(incarnation)) {
    causes_.push_back(text);
    if (how == How::kLeft) gone_by_choice_.insert(incarnation);
    if (how == How::kLeft) note_finished(incarnation);
    former_[incarnation] = how == How::kLeft ? Farewell{Farewell::Reason::kDone, "left"}
                                             : Farewell{Farewell::Reason::kEvicted, what};
    const Member& member = view_.members[rank_of(incarnation)];
    if (how != How::kLeft) given_up_.emplace(member.endpoints.host, member.pid);
  }
  const auto leaver = workers_.find(incarnation);
  if (leaver != workers_.end() && is_member(incarnation)) {
    note_departed(leaver->second, how == How::kEvicted ? "evicted" : "lost");
  }
  forget(incarnation);
}

/// `how`: unless the worker has said it.
void Membership::State::note_departed(const Worker& worker, const char* how) {
  const std::string& label = worker.registration.label;
  departed_[label] = {label, worker.unable ? "unable" : worker.done ? "finished" : how, worker.why};
}

/// Of a worker that has said goodbye.
std::string Membership::State::how_it_left(const Worker& worker) {
  if (!worker.unable) return "left";
  return "could not go on, and left" + (worker.why.empty() ? "" : ": " + worker.why);
}

void Membership::State::forget(const std::string& incarnation) {
  workers_.erase(incarnation);
  liveness_.forget(incarnation);
  absences_.erase(incarnation);
  note_company();
  if (absences_.empty()) outage_.reset();
}

void Membership::State::evict(const std::string& incarnation, const std::string& why) {
  send(incarnation, Farewell{Farewell::Reason::kEvicted, "given up: " + why});
  out_.actions.push_back(CloseConnection{incarnation});
  if (const auto worker = workers_.find(incarnation); worker != workers_.end()) {
    worker->second.why = why;
  }
  depart(incarnation, How::kEvicted, "was given up: " + why);
}

void Membership::State::refuse(const std::string& incarnation, const std::string& why) {
  send(incarnation, Refuse{why});
  out_.actions.push_back(CloseConnection{incarnation});
  depart(incarnation, How::kFailed, "was refused: " + why);
}

/// All members stand still while a joiner is linked with, so a joiner has one attempt. Where both
/// ends have the state, or both lack it, there is no telling which of them is the cause.
bool Membership::State::turn_away_unlinkable_joiner(const std::string& from,
                                                    const Suspect& suspicion) {
  const bool sender_joins = !view_.members[rank_of(from)].synced;
  const bool other_joins = !view_.members[rank_of(suspicion.incarnation)].synced;
  if (!suspicion.never_linked || sender_joins == other_joins) return false;
  const std::string& joiner = sender_joins ? from : suspicion.incarnation;
  const std::string& member = sender_joins ? suspicion.incarnation : from;
  refuse(joiner, "it cannot be linked with " + describe(member) + ": " + suspicion.reason +
                     "; check that its host and that member's reach each other (ELASTIC_BIND, "
                     "firewall)");
  return true;
}

/// Of two whose link broke, the one with more broken links goes once it is hopeless; of equals, the
/// younger one.
void Membership::State::give_up_unlinkable(const std::string& one, const std::string& other,
                                           const std::string& reason) {
  if (strikes_.empty()) struck_since_ = now_;
  const int of_one = ++strikes_[one];
  const int of_other = ++strikes_[other];
  const int attempts = std::max(of_one, of_other);
  if (attempts < kRelinkAttempts || now_ - struck_since_ < kRelinkPatience) return;
  const bool one_is_younger = rank_of(one) > rank_of(other);
  const bool one_goes = of_one != of_other ? of_one > of_other : one_is_younger;
  const std::string& goes = one_goes ? one : other;
  const std::string& stays = one_goes ? other : one;
  const std::string tried = ", tried " + std::to_string(attempts) + " times";
  strikes_.clear();
  // A job that has not begun is set up wrongly, and would begin without that worker unnoticed.
  if (nothing_done()) {
    return fail(describe(goes) + " cannot be linked with " + describe(stays) + tried + ": " +
                reason);
  }
  evict(goes, "cannot be linked with " + describe(stays) + tried);
}

/// Tells a leaver, which the view does not have any more, that it may go.
void Membership::State::release(const std::string& incarnation) {
  const bool asked = workers_.at(incarnation).said_bye;
  const Farewell farewell = asked ? Farewell{Farewell::Reason::kDone, "left"}
                                  : Farewell{Farewell::Reason::kRemoved, "removed on request"};
  send(incarnation, farewell);
  former_[incarnation] = farewell;
  const Worker& leaver = workers_.at(incarnation);
  note_departed(leaver, asked ? "lost" : "removed");
  forget(incarnation);
}

void Membership::State::finish(Farewell::Reason reason, const std::string& text) {
  if (view_.generation != 0) out_.actions.push_back(JournalEnd{Farewell{reason, text}});
  for (const auto& entry : workers_) {
    former_[entry.first] = Farewell{reason, text};
    send(entry.first, Farewell{reason, text});
    if (entry.second.said_bye && !entry.second.done) note_departed(entry.second, "lost");
  }
  note(text);
  over_ = true;
  end_ = Farewell{reason, text};
  workers_.clear();
  absences_.clear();
  outage_.reset();
  round_.reset();
}

/// No worker comes to a step boundary. What a farewell would be to them: see ends_workers().
void Membership::State::stop_without_boundary() {
  ends_workers_ = launched_;
  if (ends_workers_) workers_.clear();
  finish(Farewell::Reason::kStopped, "the job was stopped on request");
}

/// Of the members that cannot go on: each one's reason, in rank order.
std::string Membership::State::whys() const {
  std::string text;
  const auto add = [&text](const std::string& name, const std::string& why) {
    text += (text.empty() ? ": " : "; ") + name + ": " + why;
  };
  for (const auto& [label, departed] : departed_) {
    if (departed.how != "unable" || departed.why.empty()) continue;
    add(label.empty() ? "a worker that had left" : label, departed.why);
  }
  for (const std::string& member : remaining_members()) {
    const Worker& worker = workers_.at(member);
    if (!worker.why.empty()) add(rank_name(member), worker.why);
  }
  return text;
}

/// Everybody goes. The job is done, unless they go because they cannot go on.
void Membership::State::end(const std::string& text) {
  const auto any = [this](bool Worker::*what) {
    return std::any_of(workers_.begin(), workers_.end(),
                       [what](const auto& entry) { return entry.second.*what; });
  };
  if (any(&Worker::unable) && !any(&Worker::done)) return fail("no member could go on" + whys());
  finish(Farewell::Reason::kDone, text);
}

void Membership::State::fail(const std::string& text, bool misfit) {
  if (view_.generation != 0) {
    out_.actions.push_back(JournalEnd{Fail{text, misfit, timed_out_}});
  }
  for (const auto& entry : workers_) {
    send(entry.first, Fail{text, misfit, timed_out_});
  }
  note(text);
  misfit_ = misfit;
  over_ = true;
  failure_ = text;
  workers_.clear();
  absences_.clear();
  outage_.reset();
  round_.reset();
}

void Membership::State::fail_starved(std::size_t members) {
  fail("only " + std::to_string(members) + " workers are left, min_np is " +
       std::to_string(options_.min_np) +
       ", and the program does not use run, without which nobody can join" + left_early_);
}

bool Membership::State::end_if_over() {
  const std::vector<std::string> members = remaining_members();
  bool all_said_bye = true;
  for (const std::string& member : members) {
    all_said_bye = all_said_bye && workers_.at(member).said_bye;
  }
  const bool all_chose = gone_by_choice_.size() == view_.members.size();
  if (members.empty() && !ending_ && !all_chose) {
    fail("all members are gone");
  } else if (all_said_bye) {
    end("the job is done");
  } else if (stopping_ && !anybody_ready()) {
    stop_without_boundary();
  } else if (!layout_ && !view_.below_minimum && starved(members.size())) {
    // A view below the minimum is only ever made where the program uses run; after a restart the
    // members are yet to say so again.
    fail_starved(members.size());
  } else if (below_since_ && now_ >= *below_since_ + options_.below_minimum_timeout &&
             starved(members.size() + admissible().size())) {
    fail("only " + std::to_string(members.size()) + " workers are left, min_np is " +
         std::to_string(options_.min_np) + ", and no joiner came within " +
         std::to_string(options_.below_minimum_timeout.count()) + " ms" + left_early_);
  }
  return over_;
}

/// When a member's report for the immediate round is late; TimePoint::max() for never.
TimePoint Membership::State::report_due(const std::string& member) const {
  const auto found = workers_.find(member);
  if (found == workers_.end() || round_->reports.contains(member) || is_absent(member)) {
    return TimePoint::max();
  }
  return std::max(round_->started, found->second.back_at) + options_.report_window +
         liveness_.slack(now_);
}

/// Deadlines other than heartbeats'.
void Membership::State::expire() {
  expire_absences();
  if (round_ && !round_->deferred()) {
    const std::set<std::string> expected = round_->expected;
    for (const std::string& member : expected) {
      if (!workers_.contains(member) || now_ < report_due(member)) continue;
      evict(member, "frozen, but did not report within " +
                        std::to_string(options_.report_window.count()) + " ms");
      // The reports that are there stay valid: they are promises.
      round_->expected.erase(member);
    }
  }
  if (grace_ends_ && now_ >= *grace_ends_) {
    grace_ends_.reset();
    for (auto& [incarnation, worker] : workers_) {
      if (!worker.said_bye || worker.leaving) continue;
      worker.leaving = true;
      note(describe(incarnation) + " leaves without the others");
    }
  }
  if (handover_until_ && now_ >= *handover_until_) handover_until_.reset();
}

}  // namespace elastic::rendezvous
