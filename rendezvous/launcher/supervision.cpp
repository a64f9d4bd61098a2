#include "rendezvous/launcher/supervision.hpp"

#include <algorithm>
#include <signal.h>
#include <utility>

#include "rendezvous/launcher/supervision_text.hpp"

namespace elastic::launcher {

JobPhase parse_job_phase(std::string_view phase) {
  if (phase == "forming") return JobPhase::kForming;
  if (phase == "done") return JobPhase::kDone;
  if (phase == "failed") return JobPhase::kFailed;
  return JobPhase::kRunning;
}

std::vector<Action> Supervision::begin(bool in_quarantine, bool server_returns) {
  Actions actions;
  server_returns_ = server_returns;
  quarantined_ = in_quarantine;
  for (int slot = 0; slot < options_.np; ++slot) {
    if (quarantined_) {
      slots_[slot].waits = true;
      slots_[slot].outcome = "was not started: the host was in quarantine";
    } else {
      start(slot, actions);
    }
  }
  return actions;
}

std::vector<Action> Supervision::decide(const Event& event, TimePoint now) {
  Actions actions;
  if (finished_) return actions;
  std::visit([&](const auto& happened) { on(happened, now, actions); }, event);
  if (running() == 0 && !stays()) finish(actions);
  limit_wait(now);
  return actions;
}

TimePoint Supervision::next_tick() const {
  return std::min({notice_at_, terminate_at_, kill_at_, wait_until_});
}

void Supervision::on(const WorkerExited& event, TimePoint now, Actions& actions) {
  slots_[event.slot].running = false;
  const WorkerReport& report = event.report;
  note_early_ends(report);
  others_ = report.others;
  several_launchers_ |= report.several_launchers;
  if (report.unanswered) server_lost_for_ = std::max(server_lost_for_, kServerGone);
  if ((report.phase != phase_ || report.joinable != joinable_) && !ending()) {
    on(JobStateChanged{report.phase, "", report.joinable, false, recovering_, false}, now, actions);
  }
  if (event.status.ok()) return worker_ended(event.slot, report, actions);
  if (phase_ == JobPhase::kForming && !event.status.killed()) {
    return start_failed(event.slot, event.status.text(), now, actions);
  }
  if (overdue_) return worker_overdue(event.slot, report);
  // A program that catches the exception says nothing about it in its exit code.
  const std::string how =
      event.status.text() + (report.left == WorkerReport::Left::kUnable ? because(report.why) : "");
  if (phase_ == JobPhase::kFailed && signals_ == 0 && report.left == WorkerReport::Left::kLost &&
      slots_[event.slot].outcome.empty()) {
    // It died by itself, before the job failed for that. A replacement is told of the failure.
    slots_[event.slot].failure = event.status.text();
    slots_[event.slot].failures_before = failures_++;
    return;
  }
  if (phase_ == JobPhase::kDone && signals_ == 0 && left_before_end(report)) {
    return worker_missed(event.slot, how, report);
  }
  if (report.left == WorkerReport::Left::kRemoved && !ending()) {
    return removed_worker_failed(event.slot, event.status.text(), actions);
  }
  if (report.left == WorkerReport::Left::kRemoved && phase_ == JobPhase::kRunning) {
    slots_[event.slot].removed = true;
  }
  worker_failed(event.slot, how, actions);
}

void Supervision::on(const WorkerNotStarted& event, TimePoint now, Actions& actions) {
  slots_[event.slot].running = false;
  const std::string how = "could not be started: " + event.reason;
  if (phase_ == JobPhase::kForming) return start_failed(event.slot, how, now, actions);
  worker_failed(event.slot, how, actions, false);
}

void Supervision::on(const JobStateChanged& event, TimePoint now, Actions& actions) {
  server_lost_for_ = Milliseconds(0);
  // The end of a job is final; a late message about an earlier phase does not undo it.
  if (phase_ == JobPhase::kDone || phase_ == JobPhase::kFailed) return;
  phase_ = event.phase;
  if (phase_ == JobPhase::kRunning) {
    has_begun_ = true;
    for (auto& [number, slot] : slots_) slot.saw_job |= slot.running;
  }
  phase_text_ = event.text;
  job_stopped_ = event.stopped;
  joinable_ = event.joinable;
  recovering_ = event.recovering;
  if (phase_ == JobPhase::kFailed) {
    // The workers have been told and end by themselves, unless they hang. Why the job failed is
    // said when they have.
    terminate_at_ = std::min(terminate_at_, now + options_.kill_grace);
    notice_at_ = TimePoint::max();
  } else if (event.end_workers) {
    stopped_ = true;
    actions.emplace_back(
        Say{"the job was stopped: no worker is in elastic::run, so the workers are "
            "stopped where they are"});
    if (kill_at_ == TimePoint::max()) terminate(now, actions);
  } else if (joinable_ && phase_ == JobPhase::kRunning && signals_ == 0) {
    start_waiting(actions);
  } else if (phase_ == JobPhase::kDone) {
    await_exits(now);
  }
}

/// A worker may have something to save after `shutdown`, or may be stopped, or hang.
void Supervision::await_exits(TimePoint now) {
  if (kill_at_ != TimePoint::max()) return;
  terminate_at_ = std::min(terminate_at_, now + options_.exit);
  if (now + options_.exit_notice < terminate_at_) notice_at_ = now + options_.exit_notice;
}

void Supervision::on(const QuarantineChanged& event, TimePoint, Actions& actions) {
  quarantined_ = event.on;
  const bool may_start =
      phase_ == JobPhase::kForming || (phase_ == JobPhase::kRunning && joinable_);
  if (may_start && !ending()) start_waiting(actions);
}

void Supervision::on(const WorkerReplaced& event, TimePoint, Actions& actions) {
  Slot& replaced = slots_[event.slot];
  if (!std::exchange(replaced.waits, false)) return;
  replaced_ = replaced.removed = true;
  replaced.failure.clear();
  replaced.outcome += ", and another host has a worker in its place";
  actions.emplace_back(Say{worker(event.slot) + " is replaced on another host"});
}

/// Its exit is then decided on as any other: it may be started again.
void Supervision::on(const WorkerSilent& event, TimePoint, Actions& actions) {
  const auto slot = slots_.find(event.slot);
  if (slot == slots_.end() || !slot->second.running) return;
  actions.emplace_back(Say{"killing " + worker(event.slot) + " (process " + event.process +
                           "): the job has given it up" + because(event.why) +
                           "; under the backend nccl other workers of this host cannot release "
                           "their devices before its process has ended"});
  actions.emplace_back(KillWorker{event.slot});
}

void Supervision::on(const SpawnWanted& event, TimePoint, Actions& actions) {
  if (ending()) return;
  for (int added = 0; added < event.count; ++added) {
    if (running() >= options_.max_np) {
      actions.emplace_back(Say{"not starting more workers: " + std::to_string(options_.max_np) +
                               " are running, which is the most here (--max-np, --slots)"});
      return;
    }
    int slot = 0;
    while (slots_.contains(slot) && slots_[slot].running) ++slot;
    actions.emplace_back(Say{"starting " + worker(slot) + " on request"});
    start(slot, actions);
  }
}

/// Fewer than now: the workers that were started last leave.
void Supervision::on(const SlotsChanged& event, TimePoint now, Actions& actions) {
  options_.max_np = event.slots;
  if (event.slots == 0) return drain(event.deadline.value_or(options_.drain), now, actions);
  if (ending()) return;
  std::vector<int> surplus = running_slots();
  const auto kept = std::min(surplus.size(), static_cast<std::size_t>(event.slots));
  surplus.erase(surplus.begin(), surplus.begin() + static_cast<std::ptrdiff_t>(kept));
  if (!surplus.empty()) actions.emplace_back(RequestRemoval{surplus});
}

/// A launcher that holds the job's server stays, for the workers of other hosts.
void Supervision::drain(Milliseconds deadline, TimePoint now, Actions& actions) {
  if (phase_ == JobPhase::kDone || phase_ == JobPhase::kFailed || stopped_) return;
  const bool told = std::exchange(drained_, true) || signals_ > 0;
  if (running() == 0 || kill_at_ != TimePoint::max()) return;
  if (!told) {
    actions.emplace_back(
        Say{"this host is drained: its workers leave the job at the next step boundary"});
  }
  if (phase_ == JobPhase::kForming) return terminate(now, actions);
  actions.emplace_back(RequestRemoval{running_slots()});
  terminate_at_ = std::min(terminate_at_, now + deadline);
  stops_job_at_ = now + deadline / 2;
}

/// Workers that no other goes on without are not to be lost with what they have computed: they
/// leave by a stop of the job, which lets them save it.
void Supervision::on(const RemovalRefused& event, TimePoint now, Actions& actions) {
  if (running() == 0 || stops_job_ || kill_at_ != TimePoint::max()) return;
  const bool goes_on = event.others || now < stops_job_at_;
  if (drained_ && phase_ == JobPhase::kRunning && !goes_on) {
    stops_job_ = true;
    actions.emplace_back(
        Say{"no worker of another host would be left: the job stops at the next step boundary"});
    actions.emplace_back(RequestStop{});
  } else if (told_refusals_.insert(event.why).second) {
    actions.emplace_back(Say{event.why + "; it is asked for again and again"});
  }
}

/// A machine whose time is past may still be there for a while, and where the clocks differ for
/// long: a step boundary is worth a try, since workers lose their state otherwise.
void Supervision::on(const NoticeCame& event, TimePoint now, Actions& actions) {
  if (ending()) return;
  const Milliseconds time = std::max(event.left, options_.least_notice);
  std::string what =
      event.text + " in " + seconds(std::chrono::round<std::chrono::seconds>(event.left));
  if (time > event.left) what += ", and its workers have " + seconds(time) + " all the same";
  what += ": ";
  if (options_.joined) {
    actions.emplace_back(Say{what + "its workers leave the job"});
    actions.emplace_back(RequestDrain{time});
  } else {
    actions.emplace_back(Say{what + "stopping the job at the next step boundary"});
    actions.emplace_back(RequestStop{});
  }
  if (event.late > Milliseconds(0)) {
    const auto late = std::chrono::ceil<std::chrono::seconds>(event.late).count();
    actions.emplace_back(Say{"the time of this notice was " + std::to_string(late) +
                             " s ago: the clock of this machine and that of the notice's source "
                             "may differ; see that both are right"});
  }
  terminate_at_ = std::min(terminate_at_, now + time);
  noticed_ = true;
}

/// Workers train on. None that fails is started before the server is back.
void Supervision::on(const ServerMissing& event, TimePoint, Actions&) {
  server_lost_for_ = event.lost_for;
}

/// It cannot be asked, so no time is lost.
void Supervision::on(const StarterGone&, TimePoint now, Actions& actions) {
  drained_ = starter_gone_ = true;
  if (kill_at_ != TimePoint::max()) return;
  actions.emplace_back(Say{"the process that started this elasticrun is gone: stopping"});
  if (running() > 0) terminate(now, actions);
}

void Supervision::on(const SignalReceived& event, TimePoint now, Actions& actions) {
  if (options_.sigterm_repeats && event.number == SIGTERM && signals_ > 0) return;
  ++signals_;
  if (signals_ == 1) {
    first_signal_ = event.number;
    if (phase_ == JobPhase::kDone || phase_ == JobPhase::kFailed) {
      // No step is left that could be brought to an end.
      stopped_after_done_ = phase_ == JobPhase::kDone;
      end_overdue(event, now, actions);
      return;
    }
    if (phase_ == JobPhase::kForming) {
      // No step has begun that could be brought to an end.
      actions.emplace_back(Say{signal_name(event.number) + ": stopping the workers"});
      terminate(now, actions);
      return;
    }
    // Slurm repeats its SIGTERM, which is no second one.
    const bool may_repeat = !options_.sigterm_repeats || event.number != SIGTERM;
    if (options_.joined) {
      actions.emplace_back(
          Say{signal_name(event.number) +
              ": the workers of this host leave the job at the next step boundary" +
              (may_repeat ? " (again to stop them at once)" : "")});
      actions.emplace_back(RequestDrain{options_.drain});
    } else {
      actions.emplace_back(Say{signal_name(event.number) +
                               ": stopping the job at the next step boundary" +
                               (may_repeat ? " (again to stop the workers at once)" : "")});
      actions.emplace_back(RequestStop{});
    }
    terminate_at_ = std::min(terminate_at_, now + options_.drain);
  } else if (signals_ == 2 && kill_at_ == TimePoint::max()) {
    actions.emplace_back(Say{"stopping the workers at once (again to kill them)"});
    terminate(now, actions);
  } else {
    actions.emplace_back(Say{"killing the workers"});
    actions.emplace_back(SignalWorkers{SIGKILL});
    terminate_at_ = kill_at_ = TimePoint::max();
  }
}

/// The job is over. Where it is done, a worker may have something to save to its end, as without a
/// signal: it has the time that a step would have.
void Supervision::end_overdue(const SignalReceived& event, TimePoint now, Actions& actions) {
  const std::string name = signal_name(event.number);
  const bool warns = options_.sigterm_repeats && event.number == SIGTERM;
  if (warns || (stopped_after_done_ && kill_at_ == TimePoint::max())) {
    notice_at_ = TimePoint::max();
    terminate_at_ = std::min(terminate_at_, now + options_.drain);
    actions.emplace_back(NameRunning{name + ": the job is over; waiting for ",
                                     " to exit, for at most " + seconds(options_.drain) +
                                         " more (--drain-seconds)" +
                                         (warns ? "" : " (again to stop them at once)")});
    return;
  }
  actions.emplace_back(NameRunning{name + ": the job is over; stopping ", ""});
  if (kill_at_ == TimePoint::max()) terminate(now, actions);
}

void Supervision::on(const TimePassed&, TimePoint now, Actions& actions) {
  if (now >= wait_until_) {
    end_wait(actions);
  } else if (now >= kill_at_) {
    kill_at_ = TimePoint::max();
    actions.emplace_back(NameRunning{"killing ", ", which did not exit on SIGTERM"});
    actions.emplace_back(SignalWorkers{SIGKILL});
  } else if (now >= terminate_at_) {
    notice_over_ = noticed_ && phase_ == JobPhase::kRunning;
    if (phase_ == JobPhase::kDone && signals_ == 0) {
      overdue_ = true;
      actions.emplace_back(
          NameRunning{"", " did not exit within " + seconds(options_.exit) +
                              " after the job was done (--exit-seconds): sending SIGTERM"});
    }
    if (phase_ == JobPhase::kFailed && signals_ == 0) {
      actions.emplace_back(NameRunning{"the job failed; sending SIGTERM to ", ", still running"});
    }
    terminate(now, actions);
  } else if (now >= notice_at_) {
    notice_at_ = TimePoint::max();
    const auto left = std::chrono::round<std::chrono::seconds>(terminate_at_ - now);
    actions.emplace_back(
        NameRunning{"the job is done; waiting for ",
                    " to exit, for at most " + seconds(left) + " more (--exit-seconds)"});
  }
}

void Supervision::start(int slot, Actions& actions) {
  Slot& started = slots_[slot];
  started.running = true;
  started.saw_job = false;
  started.waits = false;
  started.finished = started.removed = started.unseen = false;
  started.unjoined = false;
  started.failure.clear();
  actions.emplace_back(StartWorker{slot, started.starts});
  ++started.starts;
}

void Supervision::terminate(TimePoint now, Actions& actions) {
  notice_at_ = terminate_at_ = TimePoint::max();
  kill_at_ = now + options_.kill_grace;
  cut_short_ = true;
  actions.emplace_back(SignalWorkers{SIGTERM});
}

std::vector<int> Supervision::running_slots() const {
  std::vector<int> running;
  for (const auto& [number, slot] : slots_) {
    if (slot.running) running.push_back(number);
  }
  return running;
}

int Supervision::running() const {
  return static_cast<int>(running_slots().size());
}

}  // namespace elastic::launcher
