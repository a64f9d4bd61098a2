#pragma once

#include <algorithm>
#include <csignal>
#include <optional>
#include <vector>

#include "rendezvous/launcher/supervision.hpp"

namespace elastic::launcher {

inline constexpr ExitStatus kSuccess{};
inline constexpr ExitStatus kCode3{.code = 3, .signal = 0};
inline constexpr ExitStatus kKilled{.code = 0, .signal = SIGKILL};

/// The server's report on a worker that began the job, or on one that could not join it.
inline WorkerReport in(JobPhase phase) {
  return {phase, /*joinable=*/phase == JobPhase::kRunning, WorkerReport::Left::kNot, true};
}
inline const WorkerReport kNotJoinable{JobPhase::kRunning, false, WorkerReport::Left::kNot, true};

/// Supervision with a clock that the test moves.
struct World {
  explicit World(SupervisionOptions options, bool in_quarantine = false, bool server_returns = true)
      : supervision(options) {
    note(supervision.begin(in_quarantine, server_returns));
  }

  void note(const std::vector<Action>& actions) {
    last = actions;
    for (const auto& action : actions) {
      if (const auto* start = std::get_if<StartWorker>(&action)) started.push_back(*start);
      if (const auto* signal = std::get_if<SignalWorkers>(&action))
        signals.push_back(signal->number);
      if (const auto* kill = std::get_if<KillWorker>(&action)) killed.push_back(kill->slot);
      if (std::holds_alternative<RequestStop>(action)) ++stops;
      if (std::holds_alternative<RequestDrain>(action)) ++drains;
      if (const auto* request = std::get_if<RequestReplacement>(&action))
        wanted_elsewhere.push_back(request->slot);
      if (const auto* removal = std::get_if<RequestRemoval>(&action)) removed = removal->slots;
      if (const auto* finish = std::get_if<Finish>(&action)) finished = *finish;
    }
  }
  void happens(const Event& event) { note(supervision.decide(event, now)); }
  void passes(Milliseconds time) {
    now += time;
    happens(TimePassed{});
  }
  bool shows_output_of(int slot) const {
    return std::any_of(last.begin(), last.end(), [&](const Action& action) {
      const auto* show = std::get_if<ShowOutput>(&action);
      return show != nullptr && show->slot == slot;
    });
  }

  Supervision supervision;
  TimePoint now{};
  std::vector<Action> last;
  std::vector<StartWorker> started;
  std::vector<int> signals;
  std::vector<int> killed;
  int stops = 0;
  int drains = 0;
  std::vector<int> removed;
  std::vector<int> wanted_elsewhere;
  std::optional<Finish> finished;
};

inline SupervisionOptions two_workers() {
  return {.np = 2, .max_np = 2, .max_restarts = 1};
}

}  // namespace elastic::launcher
