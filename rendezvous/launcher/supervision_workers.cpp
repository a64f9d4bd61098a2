// The decisions when a worker ends: whether another one takes its place, and what the user is told.
#include <algorithm>
#include <signal.h>
#include <utility>

#include "rendezvous/launcher/supervision.hpp"
#include "rendezvous/launcher/supervision_text.hpp"

namespace elastic::launcher {

/// It was to go, so nothing takes its place.
void Supervision::removed_worker_failed(int slot, const std::string& how, Actions& actions) {
  Slot& removed = slots_[slot];
  removed.outcome = "was removed on request, and " + how;
  actions.emplace_back(Say{worker(slot) + " " + removed.outcome +
                           "; outside of elastic::run the next call of a removed worker throws "
                           "Error(kRemoved): catch it, and end with code 0"});
}

/// It would fail again, as a worker with a wrong option does, and without it the job would begin
/// too small.
void Supervision::start_failed(int slot, const std::string& how, TimePoint now, Actions& actions) {
  if (signals_ > 0 || drained_ || failed_to_start_) return;
  failed_to_start_ = true;
  slots_[slot].failure = how;
  actions.emplace_back(Say{worker(slot) + " " + how +
                           (options_.joined ? " before the job had begun: this elasticrun ends"
                                            : " before the job had begun: the job fails")});
  if (running() > 0) terminate(now, actions);
}

/// The server knows of them once the others have trained on, which is later than their exit.
void Supervision::note_early_ends(const WorkerReport& report) {
  for (const auto& [number, why] : report.ended_early) {
    const auto slot = slots_.find(number);
    if (slot == slots_.end() || slot->second.running) continue;
    slot->second.finished = false;
    slot->second.outcome = "ended early: " + why;
  }
}

/// With code 0. A server that was started again without a journal knows nothing of the job before:
/// it has not seen this worker in it.
void Supervision::worker_ended(int slot, const WorkerReport& report, Actions& actions) {
  if (report.left == WorkerReport::Left::kEarly) return;  // its outcome is known
  Slot& ended = slots_[slot];
  if (report.left == WorkerReport::Left::kUnable) {
    if (phase_ == JobPhase::kFailed) return;  // which says why
    ended.outcome = "left before the job's end" + because(report.why);
    actions.emplace_back(Say{worker(slot) + " " + ended.outcome});
  } else if (report.left == WorkerReport::Left::kFinished ||
             (phase_ == JobPhase::kDone && report.member)) {
    ended.finished = true;
  } else if (report.left == WorkerReport::Left::kNot && has_begun_ && !ending() &&
             (report.unanswered || recovering_ ||
              (ended.saw_job && phase_ == JobPhase::kForming))) {
    ended.finished = ended.unseen = true;
    actions.emplace_back(Say{
        worker(slot) + " ended with code 0 while the job's server was away: taken for finished"});
  } else if (report.left == WorkerReport::Left::kRemoved) {
    ended.removed = true;
    ended.outcome = "was removed on request";
  } else if (phase_ == JobPhase::kDone && !ended.outcome.empty()) {
    // A replacement that came too late: what became of the worker before it is what is missing.
  } else if (signals_ == 0 && report.left == WorkerReport::Left::kEvicted) {
    ended.outcome = "was given up by the job" + because(report.why);
    actions.emplace_back(Say{worker(slot) + " " + ended.outcome + "; it exited with code 0"});
  } else if (signals_ == 0 && (report.left == WorkerReport::Left::kLost ||
                               (phase_ == JobPhase::kRunning && report.member))) {
    ended.outcome = "exited with code 0 in the middle of the job, without elastic::shutdown";
    actions.emplace_back(Say{worker(slot) + " " + ended.outcome});
  } else {
    worker_never_joined(slot, actions);
  }
}

/// With code 0: the program may have had nothing to do, or it does not call elastic::init. The
/// others wait for it.
void Supervision::worker_never_joined(int slot, Actions& actions) {
  Slot& ended = slots_[slot];
  const std::string how = "exited with code 0 before it had joined the job";
  if (ended.outcome.empty()) ended.outcome = how;
  if (ending()) return;
  ended.unjoined = true;
  std::string text = worker(slot) + " " + how + "; does its program call elastic::init?";
  if (phase_ == JobPhase::kForming && running() > 0) {
    text += " The others wait for it for " + seconds(options_.start) +
            ", and then begin without it if --min-np allows that";
  }
  actions.emplace_back(Say{text});
}

void Supervision::worker_failed(int slot, const std::string& how, Actions& actions,
                                bool may_restart) {
  // Workers that we ended, or that the job's failure ended, did not fail by themselves.
  const bool interrupted = signals_ > 0 && (!stopped_after_done_ || cut_short_);
  if (interrupted || drained_ || notice_over_ || stopped_ || failed_to_start_ ||
      phase_ == JobPhase::kFailed) {
    return;
  }
  Slot& failed = slots_[slot];
  failed.failure = failed.outcome = how;
  failed.failures_before = failures_++;
  if (phase_ == JobPhase::kDone) {
    failed_after_done_ = true;
    actions.emplace_back(Say{worker(slot) + " " + how + " after the job was done"});
  } else if (may_restart && restarts_left() && server_gone()) {
    failed.waits = true;
    failed.outcome += ", and the job's server was gone";
    std::string text =
        worker(slot) + " " + how + "; to be started again when the job's server is back";
    if (running() == 0 && longest_outage() > server_lost_for_) {
      text += ". No worker is left here: the server is waited for, for " +
              seconds(longest_outage()) + " in all";
    }
    actions.emplace_back(Say{text});
  } else if (may_restart && restarts_left() && phase_ == JobPhase::kRunning && !joinable_) {
    failed.waits = true;
    failed.outcome += ", and no worker could join the job in its place";
    actions.emplace_back(Say{worker(slot) + " " + how + when_joinable()});
  } else if (may_restart && restarts_left() && quarantined_) {
    failed.waits = true;
    failed.outcome += ", and its host was in quarantine";
    actions.emplace_back(Say{worker(slot) + " " + how +
                             "; to be started on another host, or again when this one is out of "
                             "quarantine (elasticrun ctl pardon)"});
    actions.emplace_back(RequestReplacement{slot});
  } else if (may_restart && restarts_left()) {
    restart(slot, how + "; ", actions);
  } else {
    if (may_restart) failed.outcome += ", and no restarts were left";
    const bool limited = may_restart && running() > 0;
    actions.emplace_back(Say{worker(slot) + " " + how + (limited ? without_restarts() : "")});
  }
}

/// As far as it is known what keeps workers from joining a job that runs.
std::string Supervision::when_joinable() const {
  if (server_lost_for_ > Milliseconds(0)) {
    return "; to be started again when the job's server is back";
  }
  if (recovering_) {
    return "; to be started again when the job's workers have come back to its server, which was "
           "started again" +
           (running() == 0 ? ", or after " + seconds(options_.start) + " (--start-timeout-ms)"
                           : std::string());
  }
  if (any_worker_finished()) {
    return "; to be started again if the job goes on: a worker has said that it is at its end";
  }
  return "; to be started again when a worker can join: the program has not come to elastic::run, "
         "or has left it (or else the disk of the server's journal is full)";
}

std::string Supervision::without_restarts() const {
  if (running() >= options_.min_np) return "; no restarts left, going on without it";
  return "; no restarts left, and only " + std::to_string(running()) + " of at least " +
         std::to_string(options_.min_np) +
         " workers (--min-np) run: from its next step boundary the job waits " +
         seconds(options_.below_minimum) + " for more (elasticrun ctl add), and then fails";
}

/// It was none of the job's members any more when that was done: it is missing, and the job is not
/// worse for how its process ended since.
void Supervision::worker_missed(int slot, const std::string& how, const WorkerReport& report) {
  Slot& missed = slots_[slot];
  missed.failure = how;
  missed.failures_before = failures_++;
  missed.outcome =
      report.left == WorkerReport::Left::kEvicted
          ? "was given up by the job" + because(report.why) + "; it " + how
          : how + (restarts_left() ? ", and the job was done before it could be replaced"
                                   : ", and no restarts were left");
}

/// Ended by us, because the job had ended before. A worker that the job had given up is a missing
/// one; a member may have left its work undone.
void Supervision::worker_overdue(int slot, const WorkerReport& report) {
  Slot& late = slots_[slot];
  const std::string how = "did not exit within " + seconds(options_.exit);
  late.outcome = how + " after the job was done";
  if (!report.member) return;
  late.failure = how;
  late.failures_before = failures_++;
  failed_after_done_ = true;
}

void Supervision::restart(int slot, const std::string& why, Actions& actions) {
  ++restarts_;
  actions.emplace_back(Say{worker(slot) + " " + why + "starting it again (restart " +
                           std::to_string(restarts_) + " of " +
                           std::to_string(options_.max_restarts) + ")"});
  start(slot, actions);
}

void Supervision::start_waiting(Actions& actions) {
  if (quarantined_) return;
  for (auto& [number, slot] : slots_) {
    if (!slot.waits || running() >= options_.max_np) continue;
    if (slot.starts == 0) {
      start(number, actions);
    } else if (restarts_left()) {
      restart(number, "can join now: ", actions);
    } else {
      slot.waits = false;
    }
  }
}

/// For which the server may be gone. One that lives in an elasticrun does not come back: only the
/// network may.
Milliseconds Supervision::longest_outage() const {
  return server_returns_ ? std::max(options_.outage, options_.start) : options_.start;
}

/// A launcher that has no worker, and one to start, does not wait for ever: neither for a server
/// that is gone, nor for members that do not come back to a server that does not know what became
/// of them.
void Supervision::limit_wait(TimePoint now) {
  Wait wait = Wait::kNone;
  if (!finished_ && running() == 0 && !ending() && !stopped_ && any_worker_waits()) {
    const bool lost = recovering_ || (has_begun_ && phase_ == JobPhase::kForming);
    wait = server_gone() ? Wait::kServer : lost && !quarantined_ ? Wait::kMembers : Wait::kNone;
  }
  if (std::exchange(wait_, wait) == wait) return;
  wait_until_ = TimePoint::max();
  if (wait == Wait::kNone) return;
  const TimePoint shortest = now + options_.start;
  const TimePoint end_of_outage = now + longest_outage() - server_lost_for_;
  wait_until_ = wait == Wait::kMembers ? shortest
                : server_returns_      ? std::max(shortest, end_of_outage)
                                       : std::max(now, end_of_outage);
}

/// The worker is the first of those that the server awaits, or the only one.
void Supervision::end_wait(Actions& actions) {
  wait_until_ = TimePoint::max();
  if (wait_ == Wait::kServer) {
    waited_in_vain_ = true;
  } else {
    start_waiting(actions);
  }
}

}  // namespace elastic::launcher
