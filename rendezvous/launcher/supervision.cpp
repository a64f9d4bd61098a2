#include "rendezvous/launcher/supervision.hpp"

#include <algorithm>
#include <charconv>
#include <signal.h>
#include <string.h>

namespace elastic::launcher {

namespace {

constexpr std::size_t kMostOutputsShown = 4;
constexpr int kMostNamed = 8;

std::string worker(int slot) {
  return "worker " + std::to_string(slot);
}

std::string signal_name(int number) {
  const char* abbreviated = ::sigabbrev_np(number);
  return abbreviated != nullptr ? std::string("SIG") + abbreviated
                                : "signal " + std::to_string(number);
}

std::string seconds(Milliseconds time) {
  char text[32];
  const auto end =
      std::to_chars(text, text + sizeof text, static_cast<double>(time.count()) / 1000).ptr;
  return std::string(text, end) + " s";
}

/// Before the job was done, and not on request.
bool left_early(const WorkerReport& report) {
  using Left = WorkerReport::Left;
  return report.left == Left::kUnable || report.left == Left::kEvicted ||
         report.left == Left::kLost;
}

std::string because(const std::string& why) {
  return why.empty() ? "" : ": " + why;
}

}  // namespace

JobPhase parse_job_phase(std::string_view phase) {
  if (phase == "forming") return JobPhase::kForming;
  if (phase == "done") return JobPhase::kDone;
  if (phase == "failed") return JobPhase::kFailed;
  return JobPhase::kRunning;
}

std::vector<Action> Supervision::begin() {
  Actions actions;
  for (int slot = 0; slot < options_.np; ++slot) start(slot, actions);
  return actions;
}

std::vector<Action> Supervision::decide(const Event& event, TimePoint now) {
  Actions actions;
  if (finished_) return actions;
  std::visit([&](const auto& happened) { on(happened, now, actions); }, event);
  if (running() == 0) finish(actions);
  return actions;
}

TimePoint Supervision::next_tick() const {
  return std::min({notice_at_, terminate_at_, kill_at_});
}

void Supervision::on(const WorkerExited& event, TimePoint now, Actions& actions) {
  slots_[event.slot].running = false;
  const WorkerReport& report = event.report;
  note_early_ends(report);
  if ((report.phase != phase_ || report.joinable != joinable_) && !ending()) {
    on(JobStateChanged{report.phase, "", report.joinable, false}, now, actions);
  }
  if (event.status.ok()) return worker_ended(event.slot, report, actions);
  if (phase_ == JobPhase::kForming && !event.status.killed()) {
    return start_failed(event.slot, event.status.text(), now, actions);
  }
  if (overdue_) return worker_overdue(event.slot, report);
  if (phase_ == JobPhase::kFailed && signals_ == 0 && report.left == WorkerReport::Left::kLost) {
    // It died by itself, before the job failed for that.
    slots_[event.slot].failure = event.status.text();
    slots_[event.slot].failed_as = failures_++;
    return;
  }
  if (phase_ == JobPhase::kDone && signals_ == 0 && left_early(report)) {
    return worker_missed(event.slot, event.status.text(), report);
  }
  if (report.left == WorkerReport::Left::kRemoved && !ending()) {
    return removed_worker_failed(event.slot, event.status.text(), actions);
  }
  worker_failed(event.slot, event.status.text(), actions);
}

/// It was to go, so nothing takes its place.
void Supervision::removed_worker_failed(int slot, const std::string& how, Actions& actions) {
  Slot& removed = slots_[slot];
  removed.fate = "was removed on request, and " + how;
  actions.emplace_back(Say{worker(slot) + " " + removed.fate +
                           "; outside of elastic::run the next call of a removed worker throws "
                           "Error(kRemoved): catch it, and end with code 0"});
}

/// It would fail again, as a worker with a wrong option does, and without it the job would begin
/// too small.
void Supervision::start_failed(int slot, const std::string& how, TimePoint now, Actions& actions) {
  if (signals_ > 0 || failed_to_start_) return;
  failed_to_start_ = true;
  slots_[slot].failure = how;
  actions.emplace_back(Say{worker(slot) + " " + how + " before the job had begun: the job fails"});
  if (running() > 0) terminate(now, actions);
}

/// The server knows of them once the others have trained on, which is later than their exit.
void Supervision::note_early_ends(const WorkerReport& report) {
  for (const auto& [number, why] : report.ended_early) {
    const auto slot = slots_.find(number);
    if (slot == slots_.end() || slot->second.running) continue;
    slot->second.finished = false;
    slot->second.fate = "ended early: " + why;
  }
}

/// With code 0.
void Supervision::worker_ended(int slot, const WorkerReport& report, Actions& actions) {
  Slot& ended = slots_[slot];
  if (report.left == WorkerReport::Left::kUnable) {
    if (phase_ == JobPhase::kFailed) return;  // which says why
    ended.fate = "left before the job's end" + because(report.why);
    actions.emplace_back(Say{worker(slot) + " " + ended.fate});
  } else if (report.left == WorkerReport::Left::kEarly) {
    // Its fate is known.
  } else if (report.left == WorkerReport::Left::kFinished ||
             (phase_ == JobPhase::kDone && report.member)) {
    ended.finished = true;
  } else if (report.left == WorkerReport::Left::kRemoved) {
    ended.fate = "was removed on request";
  } else if (phase_ == JobPhase::kDone && !ended.fate.empty()) {
    // A replacement that came too late: what became of the worker before it is what is missing.
  } else if (signals_ == 0 && report.left == WorkerReport::Left::kEvicted) {
    ended.fate = "was given up by the job" + because(report.why);
    actions.emplace_back(Say{worker(slot) + " " + ended.fate + "; it exited with code 0"});
  } else if (signals_ == 0 && (report.left == WorkerReport::Left::kLost ||
                               (phase_ == JobPhase::kRunning && report.member))) {
    ended.fate = "exited with code 0 in the middle of the job, without elastic::shutdown";
    actions.emplace_back(Say{worker(slot) + " " + ended.fate});
  } else {
    worker_never_joined(slot, actions);
  }
}

/// With code 0: the program may have had nothing to do, or it does not call elastic::init. The
/// others wait for it.
void Supervision::worker_never_joined(int slot, Actions& actions) {
  Slot& ended = slots_[slot];
  const std::string how = "exited with code 0 before it had joined the job";
  if (ended.fate.empty()) ended.fate = how;
  if (ending()) return;
  ended.unjoined = true;
  std::string text = worker(slot) + " " + how + "; does its program call elastic::init?";
  if (phase_ == JobPhase::kForming && running() > 0) {
    text += " The others wait for it for " + seconds(options_.start) +
            ", and then begin without it if --min-np allows that";
  }
  actions.emplace_back(Say{text});
}

void Supervision::on(const WorkerNotStarted& event, TimePoint now, Actions& actions) {
  slots_[event.slot].running = false;
  const std::string how = "could not be started: " + event.reason;
  if (phase_ == JobPhase::kForming) return start_failed(event.slot, how, now, actions);
  worker_failed(event.slot, how, actions, false);
}

void Supervision::worker_failed(int slot, const std::string& how, Actions& actions,
                                bool may_restart) {
  // Workers that we ended, or that the job's failure ended, did not fail by themselves.
  if (signals_ > 0 || stopped_ || failed_to_start_ || phase_ == JobPhase::kFailed) return;
  Slot& failed = slots_[slot];
  failed.failure = failed.fate = how;
  failed.failed_as = failures_++;
  if (phase_ == JobPhase::kDone) {
    failed_after_done_ = true;
    actions.emplace_back(Say{worker(slot) + " " + how + " after the job was done"});
  } else if (may_restart && restarts_left() && phase_ == JobPhase::kRunning && !joinable_) {
    failed.waits = true;
    failed.fate += ", and nobody could join the job in its place";
    actions.emplace_back(Say{worker(slot) + " " + how +
                             "; not starting it again while nobody can join: the job is at its "
                             "end, or no worker is in elastic::run"});
  } else if (may_restart && restarts_left()) {
    restart(slot, how + "; ", actions);
  } else {
    if (may_restart) failed.fate += ", and no restarts were left";
    const bool limited = may_restart && running() > 0;
    actions.emplace_back(Say{worker(slot) + " " + how + (limited ? without_restarts() : "")});
  }
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
  missed.failed_as = failures_++;
  missed.fate = report.left == WorkerReport::Left::kEvicted
                    ? "was given up by the job" + because(report.why) + "; it " + how
                    : how + ", and the job was done before it could be replaced";
}

/// Ended by us, because the job had ended before. A worker that the job had given up is a missing
/// one; a member may have left its work undone.
void Supervision::worker_overdue(int slot, const WorkerReport& report) {
  Slot& late = slots_[slot];
  const std::string how = "did not exit within " + seconds(options_.exit);
  late.fate = how + " after the job was done";
  if (!report.member) return;
  late.failure = how;
  late.failed_as = failures_++;
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
  for (auto& [number, slot] : slots_) {
    if (!slot.waits || !restarts_left() || running() >= options_.max_np) continue;
    restart(number, "can join now: ", actions);
  }
}

void Supervision::on(const JobStateChanged& event, TimePoint now, Actions& actions) {
  // The end of a job is final; a late message about an earlier phase does not undo it.
  if (phase_ == JobPhase::kDone || phase_ == JobPhase::kFailed) return;
  phase_ = event.phase;
  phase_text_ = event.text;
  joinable_ = event.joinable;
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

void Supervision::on(const SpawnWanted& event, TimePoint, Actions& actions) {
  if (ending()) return;
  for (int added = 0; added < event.count; ++added) {
    if (running() >= options_.max_np) {
      actions.emplace_back(Say{"not starting more workers: " + std::to_string(options_.max_np) +
                               " (--max-np) are running"});
      return;
    }
    int slot = 0;
    while (slots_.contains(slot) && slots_[slot].running) ++slot;
    actions.emplace_back(Say{"starting " + worker(slot) + " on request"});
    start(slot, actions);
  }
}

void Supervision::on(const SignalReceived& event, TimePoint now, Actions& actions) {
  ++signals_;
  if (signals_ == 1) {
    first_signal_ = event.number;
    if (phase_ == JobPhase::kForming) {
      // No step has begun that could be brought to an end.
      actions.emplace_back(Say{signal_name(event.number) + ": stopping the workers"});
      terminate(now, actions);
      return;
    }
    actions.emplace_back(
        Say{signal_name(event.number) +
            ": stopping the job at the next step boundary (again to stop the workers at once)"});
    actions.emplace_back(RequestStop{});
    terminate_at_ = now + options_.drain;
  } else if (signals_ == 2 && kill_at_ == TimePoint::max()) {
    actions.emplace_back(Say{"stopping the workers at once (again to kill them)"});
    terminate(now, actions);
  } else {
    actions.emplace_back(Say{"killing the workers"});
    actions.emplace_back(SignalWorkers{SIGKILL});
    terminate_at_ = kill_at_ = TimePoint::max();
  }
}

void Supervision::on(const TimePassed&, TimePoint now, Actions& actions) {
  if (now >= kill_at_) {
    kill_at_ = TimePoint::max();
    actions.emplace_back(NameRunning{"killing ", ", which did not exit on SIGTERM"});
    actions.emplace_back(SignalWorkers{SIGKILL});
  } else if (now >= terminate_at_) {
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
                    " to exit; SIGTERM follows in " + seconds(left) + " (--exit-seconds)"});
  }
}

void Supervision::start(int slot, Actions& actions) {
  Slot& started = slots_[slot];
  started.running = true;
  started.waits = false;
  started.finished = false;
  started.unjoined = false;
  started.failure.clear();
  actions.emplace_back(StartWorker{slot, started.starts});
  ++started.starts;
}

void Supervision::terminate(TimePoint now, Actions& actions) {
  notice_at_ = terminate_at_ = TimePoint::max();
  kill_at_ = now + options_.kill_grace;
  actions.emplace_back(SignalWorkers{SIGTERM});
}

void Supervision::finish(Actions& actions) {
  finished_ = true;
  notice_at_ = terminate_at_ = kill_at_ = TimePoint::max();
  if (phase_ == JobPhase::kDone && signals_ == 0 && !failed_after_done_ &&
      (stopped_ || failures_ == 0 || anybody_finished())) {
    actions.emplace_back(Finish{0, stopped_ ? "" : missing_workers()});
    return;
  }
  if (signals_ == 0) {
    auto failed = failed_slots();
    if (failed.size() > kMostOutputsShown) failed.resize(kMostOutputsShown);
    for (const int slot : failed) actions.emplace_back(ShowOutput{slot, slots_[slot].failure});
  }
  actions.emplace_back(Finish{1, failure_reason()});
}

std::vector<int> Supervision::failed_slots() const {
  std::vector<int> failed;
  for (const auto& [number, slot] : slots_) {
    if (!slot.failure.empty()) failed.push_back(number);
  }
  std::sort(failed.begin(), failed.end(),
            [this](int a, int b) { return slots_.at(a).failed_as < slots_.at(b).failed_as; });
  return failed;
}

std::string Supervision::failure_reason() const {
  if (signals_ > 0) return "stopped by " + signal_name(first_signal_);
  if (phase_ == JobPhase::kFailed) {
    return "the job failed" + because(phase_text_) + unjoined_workers();
  }
  if (const auto failed = failed_slots(); !failed.empty()) {
    const std::string what = worker(failed.front()) + " " + slots_.at(failed.front()).failure;
    if (phase_ == JobPhase::kDone && failed_after_done_) return what + " after the job was done";
    if (phase_ == JobPhase::kDone) return "no worker came to the job's end: " + what;
    if (failed_to_start_) return what + " before the job had begun";
    return what + ", no worker is left and " + std::to_string(restarts_) + " of " +
           std::to_string(options_.max_restarts) + " restarts are used";
  }
  if (phase_ == JobPhase::kForming) {
    return "every worker ended before the job had begun: the program never called elastic::init";
  }
  return "every worker left before the job was done: call elastic::shutdown at the end";
}

bool Supervision::anybody_finished() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const auto& entry) { return entry.second.finished; });
}

std::string Supervision::unjoined_workers() const {
  int count = 0;
  std::string text;
  for (const auto& [number, slot] : slots_) {
    if (slot.unjoined && ++count <= kMostNamed) text += "; " + worker(number) + " " + slot.fate;
  }
  if (count > kMostNamed) text += "; and " + std::to_string(count - kMostNamed) + " more";
  return text;
}

std::string Supervision::missing_workers() const {
  int finished = 0;
  int missing = 0;
  std::string fates;
  for (const auto& [number, slot] : slots_) {
    if (slot.finished) {
      ++finished;
    } else if (++missing <= kMostNamed) {
      fates += (missing == 1 ? "" : "; ") + worker(number) + " " + slot.fate;
    }
  }
  if (finished >= options_.np) return "";
  if (missing > kMostNamed) fates += "; and " + std::to_string(missing - kMostNamed) + " more";
  return "the job began with " + std::to_string(options_.np) + " workers and ended with " +
         std::to_string(finished) + ": " + fates;
}

int Supervision::running() const {
  return static_cast<int>(std::count_if(slots_.begin(), slots_.end(),
                                        [](const auto& entry) { return entry.second.running; }));
}

}  // namespace elastic::launcher
