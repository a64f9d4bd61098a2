// Departures: the ways in which one worker, or the job as a whole, comes to its end.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/membership/state.hpp"

namespace elastic::rendezvous {
namespace {

/// Number of view changes for broken links, with no operation completed in between, after which one
/// end of a link is given up. Otherwise two members that never reach each other would relink
/// forever.
constexpr int kRelinkAttempts = 4;
/// Least time before that. After a machine was paused, attempts may fail in quick succession,
/// because some members learn of the new view late.
constexpr Milliseconds kRelinkTimeLimit{5000};
/// A link that cannot be made fails sooner than this after the view that needs it: an attempt takes
/// 5 s. One that breaks later was there.
constexpr Milliseconds kLongestRelink{15000};

/// Reasons that the message of a job's failure has, bytes of each, and names of those that gave it.
constexpr std::size_t kMostWhys = 8;
constexpr std::size_t kMostOfWhy = 1000;
constexpr std::size_t kMostNames = 8;

/// Members that may leave before the first step for the way they were started: one, or an eighth.
/// Where more do, all may have been started alike.
std::size_t most_badly_started(std::size_t members) {
  return std::max<std::size_t>(members / 8, 1);
}

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNames); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kMostNames) {
    text += " and " + std::to_string(names.size() - kMostNames) + " more";
  }
  return text;
}

}  // namespace

/// Records that `incarnation` is gone, and why. `advance` draws the conclusions for the view.
void Membership::State::depart(const std::string& incarnation, Departure how,
                               const std::string& what) {
  const std::string text = describe(incarnation) + " " + what;
  log_reason(text);
  if (is_member(incarnation)) {
    causes_.push_back(text);
    if (how == Departure::kLeft) {
      gone_by_choice_.insert(incarnation);
      note_finished(incarnation);
      former_[incarnation] = Farewell{Farewell::Reason::kDone, "left"};
    } else {
      former_[incarnation] = farewell_of_lost(incarnation, what);
    }
    if (how == Departure::kEvicted) perhaps_alive_.insert(incarnation);
    const auto leaver = workers_.find(incarnation);
    if (leaver != workers_.end()) {
      note_departed(leaver->second, how == Departure::kEvicted ? "evicted" : "lost");
      if (how == Departure::kEvicted) {
        const auto& registration = leaver->second.registration;
        out_.evicted.push_back({describe(incarnation), registration.pid, registration.label, what});
      }
    }
  }
  forget(incarnation);
}

/// Records how a worker left, for the status. `how` applies unless the worker gave its own reason.
void Membership::State::note_departed(const Worker& worker, const char* how) {
  const std::string& label = worker.registration.label;
  departed_[label] = {label, worker.unable ? "unable" : worker.done ? "finished" : how, worker.why};
}

/// How a worker left that has said Bye.
std::string Membership::State::how_it_left(const Worker& worker) {
  if (!worker.unable) return "left";
  return "could not go on, and left" + (worker.why.empty() ? "" : ": " + worker.why);
}

void Membership::State::forget(const std::string& incarnation) {
  if (round_ && round_->expected.contains(incarnation)) round_->lost_one = true;
  workers_.erase(incarnation);
  if (is_member(incarnation)) by_rank_[rank_of(incarnation)] = nullptr;
  liveness_.forget(incarnation);
  absences_.erase(incarnation);
  note_first_connected();
  end_outage_if_over();
}

/// The last word to a member that the job has lost, if it lives. One that was asked to leave has no
/// need to join again.
Farewell Membership::State::farewell_of_lost(const std::string& incarnation,
                                             const std::string& what) const {
  const auto worker = workers_.find(incarnation);
  const bool asked = worker != workers_.end() && worker->second.removing;
  return asked ? Farewell{Farewell::Reason::kRemoved, "removed on request"}
               : Farewell{Farewell::Reason::kEvicted, what};
}

void Membership::State::evict(const std::string& incarnation, const std::string& why) {
  send(incarnation, farewell_of_lost(incarnation, "given up: " + why));
  out_.actions.push_back(CloseConnection{incarnation});
  if (const auto worker = workers_.find(incarnation); worker != workers_.end()) {
    worker->second.why = why;
  }
  depart(incarnation, Departure::kEvicted, "was given up: " + why);
}

/// Gives up a worker that does not answer.
void Membership::State::evict_silent(const std::string& incarnation, const std::string& why) {
  if (is_member(incarnation)) note_silent(view_.members[rank_of(incarnation)], why);
  evict(incarnation, why);
}

/// Notes that the process of a member that is given up may have to end, if the job's workers need
/// that. All of them have the same backend, so any of them may have said so: after a restart of the
/// server this one has not registered.
void Membership::State::note_silent(const Member& member, const std::string& why) {
  const bool to_end = std::any_of(workers_.begin(), workers_.end(), [](const auto& entry) {
    return entry.second.registration.end_if_silent.value_or(false);
  });
  if (to_end) silent_.add(view_, member, why);
}

void Membership::State::refuse(const std::string& incarnation, const std::string& why) {
  send(incarnation, Refuse{why});
  out_.actions.push_back(CloseConnection{incarnation});
  depart(incarnation, Departure::kFailed, "was refused: " + why);
}

/// Refuses a joiner that could not be linked with. All members wait while a joiner is linked, so it
/// has one attempt. Returns false if both ends have the state, or both lack it: then it is unknown
/// which end is the cause.
bool Membership::State::refuse_unlinkable_joiner(const std::string& from,
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

/// Counts a broken link. After kRelinkAttempts view changes over at least kRelinkTimeLimit, the end
/// with more broken links is evicted; of equals, the younger member.
void Membership::State::give_up_unlinkable(const std::string& one, const std::string& other,
                                           const std::string& reason) {
  if (broken_link_counts_.empty()) first_broken_at_ = now_;
  const int of_one = ++broken_link_counts_[one];
  const int of_other = ++broken_link_counts_[other];
  const int attempts = std::max(of_one, of_other);
  if (attempts < kRelinkAttempts || now_ - first_broken_at_ < kRelinkTimeLimit) return;
  const bool one_is_younger = rank_of(one) > rank_of(other);
  const bool one_goes = of_one != of_other ? of_one > of_other : one_is_younger;
  const std::string& goes = one_goes ? one : other;
  const std::string& stays = one_goes ? other : one;
  const std::string tried = ", tried " + std::to_string(attempts) + " times";
  broken_link_counts_.clear();
  // In a job that has not begun, the fault is in the setup, and an eviction would hide it: the job
  // fails.
  if (nothing_done()) {
    return fail(describe(goes) + " cannot be linked with " + describe(stays) + tried + ": " +
                reason);
  }
  evict(goes, "cannot be linked with " + describe(stays) + tried);
}

/// An operation has completed in the present view, of which the links in `broken` failed. So links
/// work, and broken ones are no longer counted. A pair whose link was to be renewed for this view,
/// and failed again soon, still counts: in a large view one lane goes on without the links that it
/// does not need, while the other lane waits for a link that cannot be made.
void Membership::State::forgive_broken_links(const std::vector<BrokenPair>& broken) {
  std::set<std::string> fail_again;
  for (const BrokenPair& pair : broken) {
    const bool again = std::ranges::any_of(view_.broken, [&](const BrokenPair& before) {
      return before == pair || before == BrokenPair{pair.other, pair.one};
    });
    if (again && now_ < entered_at_ + kLongestRelink) fail_again.insert({pair.one, pair.other});
  }
  std::erase_if(broken_link_counts_,
                [&](const auto& count) { return !fail_again.contains(count.first); });
}

/// Tells a leaver that is no longer in the view that it may go.
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

/// Ends the job: every worker receives a farewell with `reason`, and the journal records the end.
void Membership::State::finish(Farewell::Reason reason, const std::string& text) {
  if (view_.generation != 0) out_.actions.push_back(JournalEnd{Farewell{reason, text}});
  for (const auto& entry : workers_) {
    former_[entry.first] = Farewell{reason, text};
    send(entry.first, Farewell{reason, text});
    if (entry.second.said_bye && !entry.second.done) note_departed(entry.second, "lost");
  }
  log_reason(text);
  over_ = true;
  end_ = Farewell{reason, text};
  keep_last_progress();
  workers_.clear();
  by_rank_.clear();
  absences_.clear();
  outage_.reset();
  round_.reset();
}

/// Stops a job in which no worker reaches a step boundary. With a launcher no farewell is sent, for
/// the reason given at ends_workers().
void Membership::State::stop_without_boundary() {
  ends_workers_ = launched_;
  if (ends_workers_) {
    keep_last_progress();
    workers_.clear();
    by_rank_.clear();
  }
  finish(Farewell::Reason::kStopped, "the job was stopped on request");
}

/// The reasons of the workers that could not go on, each once, after the names of those that gave
/// it: first of those that have left, then of the members in rank order. Not of all: the text has
/// to fit into a message.
std::string Membership::State::reasons_of_unable() const {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  const auto add = [&](const std::string& name, const std::string& why) {
    const auto known = std::find_if(reasons.begin(), reasons.end(),
                                    [&](const auto& reason) { return reason.first == why; });
    (known == reasons.end() ? reasons.emplace_back(why, std::vector<std::string>()) : *known)
        .second.push_back(name);
  };
  for (const auto& [label, departed] : departed_) {
    if (departed.how != "unable" || departed.why.empty()) continue;
    add(label.empty() ? "a worker that had left" : label, departed.why);
  }
  for (const std::string& member : remaining_members()) {
    const Worker& worker = workers_.at(member);
    const std::string& label = worker.registration.label;
    if (!worker.why.empty()) add(label.empty() ? rank_name(member) : label, worker.why);
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(reasons.size(), kMostWhys); ++i) {
    const auto& [why, names] = reasons[i];
    text += (i == 0 ? ": " : "; ") + list(names) + ": " + why.substr(0, kMostOfWhy);
    if (why.size() > kMostOfWhy) text += " ...";
  }
  if (reasons.size() > kMostWhys) {
    text += "; and " + std::to_string(reasons.size() - kMostWhys) + " more";
  }
  return text;
}

/// Ends a job without remaining members. It is done, unless its members left because they could not
/// go on.
void Membership::State::end(const std::string& text) {
  const auto any = [this](bool Worker::*what) {
    return std::any_of(workers_.begin(), workers_.end(),
                       [what](const auto& entry) { return entry.second.*what; });
  };
  if (any(&Worker::unable) && !any(&Worker::done))
    return fail("no member could go on" + reasons_of_unable());
  finish(Farewell::Reason::kDone, text);
}

/// Ends the job in an error: every worker receives Fail with `text`, and the journal records the
/// end. An end that no worker hears of is not recorded while members may live: they train on, and a
/// restarted server has to continue their job.
void Membership::State::fail(const std::string& text, bool misfit) {
  const bool is_final = !workers_.empty() || perhaps_alive_.empty();
  if (view_.generation != 0 && is_final) {
    out_.actions.push_back(JournalEnd{Fail{text, misfit, timed_out_, mismatch_}});
  }
  std::vector<std::string> all;
  for (const auto& entry : workers_) all.push_back(entry.first);
  send_to_all(std::move(all), Fail{text, misfit, timed_out_, mismatch_});
  log_reason(text);
  misfit_ = misfit;
  over_ = true;
  failure_ = text;
  keep_last_progress();
  workers_.clear();
  by_rank_.clear();
  absences_.clear();
  outage_.reset();
  round_.reset();
}

void Membership::State::fail_starved(std::size_t members) {
  fail("only " + std::to_string(members) + " workers are left, min_np is " +
       std::to_string(options_.min_np) +
       ", and the program does not use run, without which no worker can join" + left_early_);
}

/// Ends the job if a condition for its end holds: many members could not begin, all are gone, all
/// have said Bye, it was stopped and no member reaches a step boundary, or fewer than `min_np`
/// workers are left and no joiner can come, or none has come in time.
bool Membership::State::end_if_over() {
  const std::size_t members = count_remaining();
  const bool all_said_bye = !any_remaining([](const Worker& worker) { return !worker.said_bye; });
  const bool all_chose = gone_by_choice_.size() == view_.members.size();
  if (!has_made_a_step() && badly_started_ > most_badly_started(view_.members.size())) {
    // The others would leave one after the other.
    fail("too many members could not begin" + reasons_of_unable());
  } else if (members == 0 && !ending_ && !all_chose) {
    fail("all members are gone");
  } else if (all_said_bye) {
    end("the job is done");
  } else if (stopping_ && without_boundaries()) {
    stop_without_boundary();
  } else if (!layout_ && !view_.below_minimum && starved(members)) {
    // A view below the minimum exists only if the program uses `run`. After a restart of the server
    // its members have yet to send their layouts again.
    fail_starved(members);
  } else if (below_since_ && now_ >= *below_since_ + options_.below_minimum_timeout &&
             starved(members + admissible().size())) {
    fail("only " + std::to_string(members) + " workers are left, min_np is " +
         std::to_string(options_.min_np) + ", and no joiner came within " +
         std::to_string(options_.below_minimum_timeout.count()) + " ms" + left_early_);
  }
  return over_;
}

/// When a member's report for the immediate round is late; TimePoint::max() for never.
TimePoint Membership::State::report_due(const std::string& member) const {
  const auto found = workers_.find(member);
  if (found == workers_.end() || round_->reports.contains(member) || is_absent(member) ||
      is_cut_off()) {
    return TimePoint::max();
  }
  const TimePoint due =
      std::max(round_->started, found->second.back_at) + report_window() + liveness_.slack(now_);
  const bool is_borne = due <= now_ && has_last_state(member) && !liveness_.answers(member, now_);
  return is_borne ? std::max(due, liveness_.borne_until(member)) : due;
}

/// Without it the job's state would be lost: of the other members that have it, none answers.
bool Membership::State::has_last_state(const std::string& incarnation) const {
  if (!is_member(incarnation)) return false;
  const auto has_state = [this](const Member& member) { return progress_of(member).synced; };
  if (!has_state(view_.members[rank_of(incarnation)])) return false;
  return std::ranges::none_of(view_.members, [&](const Member& other) {
    return other.incarnation != incarnation && workers_.contains(other.incarnation) &&
           !is_absent(other.incarnation) && liveness_.answers(other.incarnation, now_) &&
           has_state(other);
  });
}

/// Enforces the deadlines other than those of heartbeats: of absences, reports, the farewell and
/// hand-overs.
void Membership::State::expire() {
  expire_absences();
  if (round_ && !round_->deferred()) {
    const std::set<std::string> expected(round_->expected.begin(), round_->expected.end());
    for (const std::string& member : expected) {
      if (!workers_.contains(member) || now_ < report_due(member)) continue;
      round_->expected.erase(member);  // the reports received so far stay valid: they are binding
      evict_silent(member, "frozen, but did not report within " +
                               std::to_string(report_window().count()) + " ms");
    }
  }
  if (grace_ends_ && now_ >= *grace_ends_) {
    grace_ends_.reset();
    for (auto& [incarnation, worker] : workers_) {
      if (!worker.said_bye || worker.leaving) continue;
      worker.leaving = true;
      log_reason(describe(incarnation) + " leaves without the others");
    }
  }
  if (handover_until_ && now_ >= *handover_until_) handover_until_.reset();
}

}  // namespace elastic::rendezvous
