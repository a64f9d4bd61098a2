#include "runtime/step_clock.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/ticks.hpp"

namespace elastic::runtime {

namespace {
/// Thread-local, because a Work knows of no context, and because other threads should have no cost.
thread_local StepClock* clock_of_this_thread = nullptr;
}  // namespace

StepClock* StepClock::of_this_thread() {
  return clock_of_this_thread;
}

StepClock::Running::Running(StepClock& clock, const ViewChangeClock& view_changes)
    : outer_(std::exchange(clock_of_this_thread, &clock)) {
  clock.view_changes_ = &view_changes;
  clock.seen_changes_ = view_changes.installed();
  clock.phase_ = Phase::kCompute;
  clock.since_ = ticks();
  clock.begin_step();
}

StepClock::Running::~Running() {
  clock_of_this_thread->view_changes_ = nullptr;
  clock_of_this_thread = outer_;
}

void StepClock::begin_step() {
  spent_ = {};
  step_began_ = Clock::now();
  step_began_at_ = since_;
}

Phase StepClock::enter(Phase phase) {
  charge();
  return std::exchange(phase_, phase);
}

/// Adds the time since the last call to the present phase.
void StepClock::charge() {
  const std::int64_t passed = std::max<std::int64_t>(0, ticks() - since_);
  since_ += passed;
  spent(phase_) += passed;
  if (phase_ != Phase::kCommunication) return;
  const std::uint64_t changes = view_changes_->installed();
  if (std::exchange(seen_changes_, changes) != changes) take_view_change_out_of(passed);
}

double StepClock::nanoseconds_per_tick(TimePoint now) const {
  const std::chrono::duration<double, std::nano> passed = now - step_began_;
  return passed.count() / static_cast<double>(std::max<std::int64_t>(1, since_ - step_began_at_));
}

/// Moves the part of the last `last_ticks` in which the view changed from communication to view
/// change.
void StepClock::take_view_change_out_of(std::int64_t last_ticks) {
  const TimePoint end = Clock::now();
  const double worth = nanoseconds_per_tick(end);
  const auto length =
      std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(last_ticks) * worth));
  const ViewChange change = view_changes_->latest();
  const TimePoint resumed = change.resumed == TimePoint{} ? end : std::min(change.resumed, end);
  const std::chrono::duration<double, std::nano> changing =
      resumed - std::max(change.noticed, end - length);
  const auto taken =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(changing.count() / worth), 0, last_ticks);
  spent(Phase::kCommunication) -= taken;
  spent(Phase::kViewChange) += taken;
}

StepTime StepClock::so_far() {
  charge();
  const double worth = nanoseconds_per_tick(Clock::now());
  const auto time = [&](Phase phase) {
    const double nanoseconds = static_cast<double>(spent(phase)) * worth;
    return StepTime::Duration(static_cast<std::int64_t>(nanoseconds));
  };
  return {time(Phase::kData), time(Phase::kCompute), time(Phase::kCommunication),
          time(Phase::kViewChange)};
}

void StepClock::end_step() {
  const StepTime step = so_far();
  begin_step();
  const MutexLock lock(mutex_);
  ++times_.steps;
  times_.latest = step;
  times_.sum.data += step.data;
  times_.sum.compute += step.compute;
  times_.sum.communication += step.communication;
  times_.sum.view_change += step.view_change;
}

void StepClock::compare(std::uint64_t commit, std::vector<StepTime> by_rank) {
  const auto slowest = std::ranges::max_element(by_rank, {}, &StepTime::own);
  const MutexLock lock(mutex_);
  times_.compared_commit = commit;
  times_.slowest = static_cast<int>(slowest - by_rank.begin());
  times_.by_rank = std::move(by_rank);
}

StepTimes StepClock::times() const {
  const MutexLock lock(mutex_);
  return times_;
}

}  // namespace elastic::runtime

namespace elastic {

namespace {
constexpr int kNotTraining = -1;
}  // namespace

LoadingData::LoadingData() : outer_(kNotTraining) {
  runtime::StepClock* const clock = runtime::StepClock::of_this_thread();
  if (clock != nullptr) outer_ = static_cast<int>(clock->enter(runtime::Phase::kData));
}

LoadingData::~LoadingData() {
  runtime::StepClock* const clock = runtime::StepClock::of_this_thread();
  if (outer_ == kNotTraining || clock == nullptr) return;
  clock->enter(static_cast<runtime::Phase>(outer_));
}

}  // namespace elastic
