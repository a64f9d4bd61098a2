#include "rendezvous/server/history_recorder.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace elastic::rendezvous {

namespace {

constexpr std::size_t kMostEvents = 100;
/// A view that many workers have left has a long text.
constexpr std::size_t kLongestText = 300;
constexpr std::int64_t kBetweenRatesMs = 5000;
/// Twenty minutes.
constexpr std::size_t kMostRates = 240;

}  // namespace

HistoryRecorder::HistoryRecorder() {
  const std::vector<std::uint64_t> none(kRecoveryBounds.size() + 1);
  for (const char* cause : {"start", "loss", "leave", "join", "repair"}) {
    history_.views.push_back({cause, 0, 0, none});
  }
}

std::string cause_of(const View& view) {
  if (!view.lost.empty()) return "loss";
  if (!view.left.empty()) return "leave";
  if (!view.joined.empty()) return "join";
  return "repair";
}

void HistoryRecorder::note_event(const std::string& event, const std::string& text,
                                 std::int64_t at_ms, std::optional<double> seconds) {
  std::string shown = text.substr(0, kLongestText);
  if (text.size() > kLongestText) shown += "...";
  auto& events = history_.events;
  if (events.size() == kMostEvents) events.erase(events.begin());
  events.push_back({at_ms, event, std::move(shown), seconds});
}

std::vector<HistoryRecorder::Recovery> HistoryRecorder::note_view(const View& view) {
  std::set<std::string> members;
  for (const Member& its : view.members) members.insert(its.incarnation);
  for (Pending& one : pending_) {
    std::erase_if(one.awaited, [&](const auto& member) { return !members.contains(member); });
  }
  std::vector<Recovery> complete = take_complete();
  const std::string cause = began_ ? cause_of(view) : "start";
  ++views_by(cause).count;
  if (std::exchange(began_, true)) {
    for (const std::string& joined : view.joined) members.erase(joined);
    pending_.push_back({{view.generation, cause, 0}, std::move(members), false});
  }
  return complete;
}

std::vector<HistoryRecorder::Recovery> HistoryRecorder::note_figures(const std::string& incarnation,
                                                                     const WorkerFigures& figures) {
  if (figures.changes.empty()) return {};
  for (Pending& one : pending_) {
    // A member that was not stopped by this change has told of a later one alone.
    if (one.recovery.generation > figures.changes.back().generation) continue;
    if (one.awaited.erase(incarnation) == 0) continue;
    for (const WorkerFigures::Change& change : figures.changes) {
      if (change.generation != one.recovery.generation) continue;
      one.told = true;
      one.recovery.seconds = std::max(one.recovery.seconds, change.seconds);
    }
  }
  return take_complete();
}

std::vector<HistoryRecorder::Recovery> HistoryRecorder::take_complete() {
  std::vector<Recovery> complete;
  std::erase_if(pending_, [&](const Pending& one) {
    if (!one.awaited.empty()) return false;
    if (one.told) complete.push_back(one.recovery);
    return true;
  });
  for (const Recovery& recovery : complete) {
    JobHistory::Views& views = views_by(recovery.cause);
    const auto bound =
        std::lower_bound(kRecoveryBounds.begin(), kRecoveryBounds.end(), recovery.seconds);
    ++views.recoveries[static_cast<std::size_t>(bound - kRecoveryBounds.begin())];
    views.recovery_s += recovery.seconds;
  }
  return complete;
}

bool HistoryRecorder::wants_rate(std::int64_t at_ms) const {
  return history_.rates.empty() || at_ms >= history_.rates.back().at_ms + kBetweenRatesMs;
}

void HistoryRecorder::note_rate(double steps_per_second, std::int64_t at_ms) {
  auto& rates = history_.rates;
  if (rates.size() == kMostRates) rates.erase(rates.begin());
  rates.push_back({at_ms, steps_per_second});
}

JobHistory::Views& HistoryRecorder::views_by(const std::string& cause) {
  return *std::find_if(history_.views.begin(), history_.views.end(),
                       [&](const auto& views) { return views.cause == cause; });
}

}  // namespace elastic::rendezvous
