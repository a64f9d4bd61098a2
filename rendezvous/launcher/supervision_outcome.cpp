// The end of a job as the user sees it: the exit code, and the last line with its reason.
#include <algorithm>

#include "rendezvous/launcher/exit_code.hpp"
#include "rendezvous/launcher/supervision.hpp"
#include "rendezvous/launcher/supervision_text.hpp"

namespace elastic::launcher {

namespace {

constexpr std::size_t kMostOutputsShown = 4;
constexpr int kMostNamed = 8;

}  // namespace

std::optional<Finish> end_of_latecomer(const JobStateChanged& job, const std::string& address,
                                       bool server_is_known) {
  const bool failed = job.phase == JobPhase::kFailed;
  if (!failed && job.phase != JobPhase::kDone) return std::nullopt;
  const std::string how = failed ? "had failed" : job.stopped ? "was stopped" : "was done";
  std::string text = "the job at " + address + " " + how +
                     " before this elasticrun joined it, so no worker was started here";
  if (failed) text += "; it failed" + because(job.text);
  if (server_is_known) {
    text += "; one server serves one job: start a new server for another training";
  }
  return Finish{failed ? exit_code::kFailed : exit_code::kDone, text};
}

void Supervision::finish(Actions& actions) {
  finished_ = true;
  notice_at_ = terminate_at_ = kill_at_ = TimePoint::max();
  // On other hosts; here a replacement still waits, or came too late.
  const bool others_went_on = quarantined_ || all_workers_left() ||
                              (options_.joined && (any_worker_waits() || failed_slots().empty()));
  // A signal that came when the job was done, and workers that then ended by themselves.
  const bool undisturbed = signals_ == 0 || (stopped_after_done_ && !cut_short_);
  if (phase_ == JobPhase::kDone && undisturbed && !failed_after_done_ && !stopped_ &&
      (others_went_on || failures_ == 0 || any_worker_finished())) {
    actions.emplace_back(Finish{exit_code::kDone, missing_workers()});
    return;
  }
  if (const auto left = departure()) {
    actions.emplace_back(*left);
    return;
  }
  if (signals_ == 0) {
    auto failed = failed_slots();
    if (failed.size() > kMostOutputsShown) failed.resize(kMostOutputsShown);
    for (const int slot : failed) actions.emplace_back(ShowOutput{slot, slots_[slot].failure});
  }
  const bool by_itself = signals_ == 0 && !drained_ && !notice_over_ && phase_ != JobPhase::kDone;
  actions.emplace_back(Finish{failure_code(), failure_reason(), has_begun_ && by_itself});
}

int Supervision::failure_code() const {
  if (!options_.joined || signals_ > 0) return exit_code::kFailed;
  if (phase_ == JobPhase::kForming) return exit_code::kFailedAtStart;
  const bool asked = drained_ || notice_over_ || stopped_;
  const bool lost = !asked && !server_gone() && phase_ != JobPhase::kFailed &&
                    !failed_after_done_ && !failed_slots().empty();
  return lost ? exit_code::kWorkersLost : exit_code::kFailed;
}

std::optional<Finish> Supervision::departure() const {
  if (!options_.joined || stopped_ || phase_ == JobPhase::kFailed) return std::nullopt;
  if (starter_gone_) return Finish{exit_code::kFailed, ""};  // which was said
  const bool asked = signals_ > 0 || drained_ || notice_over_;
  if (phase_ == JobPhase::kDone && job_stopped_ && signals_ > 0) {
    return Finish{exit_code::kFailed,
                  "stopped by " + signal_name(first_signal_) +
                      (stops_job_ ? ": the job's last workers ran on this host, and the job was "
                                    "stopped with them"
                                  : ": the job was stopped, too")};
  }
  if (phase_ == JobPhase::kDone) {
    if (failed_after_done_ || !all_workers_left()) return std::nullopt;
    return Finish{exit_code::kDone, ""};
  }
  if (!asked && !all_workers_left()) return std::nullopt;
  if (all_workers_left() && any_end_unseen()) {
    return Finish{
        exit_code::kDone,
        "the workers of this host ended with code 0 while the job's server was away: taken "
        "for finished"};
  }
  if (server_gone()) {
    return Finish{exit_code::kFailed,
                  "the workers of this host have ended; whether the job goes on is not known, as "
                  "its server does not come back"};
  }
  if (phase_ == JobPhase::kForming) {
    return Finish{exit_code::kDrained, "this host has left the job, which had not begun"};
  }
  if (all_workers_left()) {
    return Finish{asked ? exit_code::kDrained : exit_code::kDone,
                  "the workers of this host have left the job, which goes on"};
  }
  if (!others_) {
    return Finish{exit_code::kFailed,
                  "the workers of this host were stopped where they were, and were the job's last"};
  }
  return Finish{exit_code::kDrained,
                "the workers of this host were stopped where they were; the job goes on without "
                "them"};
}

std::vector<int> Supervision::failed_slots() const {
  std::vector<int> failed;
  for (const auto& [number, slot] : slots_) {
    if (!slot.failure.empty()) failed.push_back(number);
  }
  std::sort(failed.begin(), failed.end(), [this](int a, int b) {
    return slots_.at(a).failures_before < slots_.at(b).failures_before;
  });
  return failed;
}

std::string Supervision::failure_reason() const {
  if (signals_ > 0 && !(stopped_after_done_ && failed_after_done_)) {
    return "stopped by " + signal_name(first_signal_) +
           (stopped_after_done_ ? " after the job was done" : "");
  }
  if (phase_ == JobPhase::kFailed) {
    return "the job failed" + because(phase_text_) + unjoined_workers();
  }
  if (stopped_) return "the job was stopped, and its workers where they were";
  if (drained_) return "the workers of this host were stopped before they had ended";
  if (notice_over_ && phase_ == JobPhase::kRunning) {
    return "the workers were stopped where they were, at the time of the notice";
  }
  if (const auto failed = failed_slots(); !failed.empty()) {
    const std::string what = worker(failed.front()) + " " + slots_.at(failed.front()).failure;
    if (phase_ == JobPhase::kDone && failed_after_done_) return what + " after the job was done";
    if (phase_ == JobPhase::kDone) return "no worker came to the job's end: " + what;
    if (failed_to_start_) return what + " before the job had begun";
    if (any_end_unseen()) {
      return what +
             "; the other workers of this host ended with code 0 while the job's server was away";
    }
    if (server_gone()) {
      return what + ", no worker is left, and the job's server does not come back" +
             (waited_in_vain_ ? ": it was waited for, for " + seconds(longest_outage()) : "");
    }
    return what + ", no worker is left and " + std::to_string(restarts_) + " of " +
           std::to_string(options_.max_restarts) + " restarts are used";
  }
  if (phase_ == JobPhase::kForming) {
    return "every worker ended before the job had begun: the program never called elastic::init";
  }
  return "every worker left before the job was done: call elastic::shutdown at the end";
}

bool Supervision::stays() const {
  if (signals_ > 0 || stopped_ || phase_ == JobPhase::kDone || phase_ == JobPhase::kFailed) {
    return false;
  }
  // The server tells the end of a job that runs. Until it does, a worker may come to be started.
  const bool may_start =
      !drained_ && !notice_over_ && !waited_in_vain_ && any_worker_waits() && !any_end_unseen();
  if (options_.joined) {
    const bool waits = (options_.waits || replaced_) && all_workers_left();
    return !drained_ && (may_start || quarantined_ || waits);
  }
  if (server_gone()) return may_start;
  const bool job_goes_on = drained_ || quarantined_ || replaced_ || (may_start && others_);
  return job_goes_on && phase_ == JobPhase::kRunning;
}

bool Supervision::all_workers_left() const {
  return std::all_of(slots_.begin(), slots_.end(), [](const auto& entry) {
    return entry.second.removed || entry.second.finished;
  });
}

bool Supervision::any_worker_finished() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const auto& entry) { return entry.second.finished; });
}

/// The training is over then.
bool Supervision::any_end_unseen() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const auto& entry) { return entry.second.unseen; });
}

bool Supervision::any_worker_waits() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const auto& entry) { return entry.second.waits; });
}

std::string Supervision::unjoined_workers() const {
  int count = 0;
  std::string text;
  for (const auto& [number, slot] : slots_) {
    if (slot.unjoined && ++count <= kMostNamed) text += "; " + worker(number) + " " + slot.outcome;
  }
  if (count > kMostNamed) text += "; and " + std::to_string(count - kMostNamed) + " more";
  return text;
}

std::string Supervision::missing_workers() const {
  if (options_.joined) return "";  // they may have been replaced on other hosts
  int finished = 0;
  std::vector<std::string> missing;
  for (const auto& [number, slot] : slots_) {
    if (slot.finished) {
      ++finished;
    } else {
      missing.push_back(worker(number) + " " + slot.outcome);
    }
  }
  const std::string fewer = fewer_workers(options_.np, finished, missing);
  return several_launchers_ && !fewer.empty() ? "on this host " + fewer : fewer;
}

}  // namespace elastic::launcher
