// The events of a job, as they are noted for people and programs.
#include <fmt/format.h>

#include "base/wall_clock.hpp"
#include "rendezvous/server/job.hpp"

namespace elastic::rendezvous {

/// In the event log and in the history.
void Job::note(const std::string& event, const std::string& text, const EventLog::Fields& fields,
               std::optional<double> seconds) {
  events_.write(event, fields);
  history_.note_event(event, text, milliseconds_since_1970(), seconds);
}

void Job::note_view() {
  const View& view = membership_.view();
  if (view.generation == noted_generation_) return;
  noted_generation_ = view.generation;
  note_recoveries(history_.note_view(view));
  quarantine_.note_view(view, Clock::now());
  std::vector<std::string> slots;
  for (const Member& its : view.members) slots.push_back(its.label);
  const std::string cause = view.cause.empty() ? "the first view" : view.cause;
  note("view",
       "view " + std::to_string(view.generation) + " of " + std::to_string(view.members.size()) +
           " workers: " + cause,
       {{"generation", static_cast<std::int64_t>(view.generation)},
        {"workers", static_cast<std::int64_t>(view.members.size())},
        {"joined", static_cast<std::int64_t>(view.joined.size())},
        {"commits", static_cast<std::int64_t>(status().commits)},
        {"slots", slots},
        {"cause", view.cause}});
}

void Job::note_recoveries(const std::vector<HistoryRecorder::Recovery>& recoveries) {
  for (const auto& its : recoveries) {
    note("recovery",
         fmt::format("view {} ({}): the training stopped for {:.3f} s", its.generation, its.cause,
                     its.seconds),
         {{"generation", static_cast<std::int64_t>(its.generation)},
          {"cause", its.cause},
          {"seconds", its.seconds}},
         its.seconds);
  }
}

void Job::note_heartbeat(const std::string& incarnation, const Heartbeat& heartbeat) {
  if (!heartbeat.figures) return;
  note_recoveries(history_.note_figures(incarnation, *heartbeat.figures));
  const std::int64_t now = milliseconds_since_1970();
  if (history_.wants_rate(now)) history_.note_rate(membership_.steps_per_second(Clock::now()), now);
}

void Job::note_phase(const std::string& reason) {
  const Phase now = abandoned_.empty() ? membership_.phase() : Phase::kFailed;
  const bool joinable = membership_.joinable() && no_room_.empty();
  if (now == phase_ && joinable == joinable_) return;
  joinable_ = joinable;
  if (now != phase_) {
    phase_text_ = abandoned_.empty() ? reason : abandoned_;
    const std::string phase = rendezvous::name(now);
    const EventLog::Fields fields{{"phase", phase}, {"text", phase_text_}};
    if (now == Phase::kRunning || now == Phase::kChanging) {
      events_.write("phase", fields);  // for people the view says more
    } else {
      note("phase", phase + ": " + phase_text_, fields);
    }
  }
  phase_ = now;
  for (const Peer& launcher : launchers_.peers()) launcher->send(state());
}

}  // namespace elastic::rendezvous
