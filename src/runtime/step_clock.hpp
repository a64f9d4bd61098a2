#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "elastic/diagnostics.hpp"
#include "runtime/view_change_clock.hpp"

namespace elastic::runtime {

/// The phases of a training thread's step.
enum class Phase : std::uint8_t { kCompute, kData, kCommunication, kViewChange };

/// Measures the training thread's steps. Every moment of a step belongs to one phase, that of the
/// innermost Blocked or LoadingData, so the phases add up to the step. It counts in ticks of the
/// processor, whose cost is small against an allreduce of 300 ns, and converts them at the end of
/// the step.
///
/// Any thread may call `times`; only the training thread calls the other functions.
class StepClock {
 public:
  /// Makes `clock` the calling thread's clock, until destroyed.
  class Running {
   public:
    Running(StepClock& clock, const ViewChangeClock& view_changes);
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    StepClock* outer_;
  };

  /// The calling thread's clock, or null.
  static StepClock* of_this_thread();

  /// Attributes the time from now on to `phase`; returns the phase before.
  Phase enter(Phase phase);

  /// The time of the present step so far, by phase.
  StepTime so_far();
  void end_step();
  /// Stores the times of all ranks in one step.
  void compare(std::uint64_t commit, std::vector<StepTime> by_rank);

  StepTimes times() const;

 private:
  std::int64_t& spent(Phase phase) { return spent_[static_cast<std::size_t>(phase)]; }
  void begin_step();
  void charge();
  double nanoseconds_per_tick(TimePoint now) const;
  void take_view_change_out_of(std::int64_t last_ticks);

  const ViewChangeClock* view_changes_ = nullptr;
  std::uint64_t seen_changes_ = 0;
  std::array<std::int64_t, 4> spent_{};  // ticks in this step
  Phase phase_ = Phase::kCompute;
  std::int64_t since_ = 0;  // ticks
  TimePoint step_began_;
  std::int64_t step_began_at_ = 0;  // ticks

  mutable Mutex mutex_;
  StepTimes times_ ELASTIC_GUARDED_BY(mutex_);
};

/// While this object exists, the calling thread is blocked in the library.
class Blocked {
 public:
  explicit Blocked(Phase phase = Phase::kCommunication) : clock_(StepClock::of_this_thread()) {
    if (clock_ != nullptr) outer_ = clock_->enter(phase);
  }
  ~Blocked() {
    if (clock_ != nullptr) clock_->enter(outer_);
  }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;

 private:
  StepClock* clock_;
  Phase outer_ = Phase::kCompute;
};

}  // namespace elastic::runtime
