#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "collectives/backend/nccl/communicator/communicator_state.hpp"

namespace elastic::collectives::nccl {

/// A CommunicatorState that threads share: they bring it events, and wait for its changes.
///
/// Any thread. The lock is held only while the state decides, never during a call of NCCL.
class SharedState {
 public:
  SharedState(const DecidedView& view, const Deadlines& deadlines)
      : generation_(view.generation), state_(view, deadlines) {}

  /// Applies `step`, which gets the state and the present time, and wakes all waiting threads.
  template <typename Step>
  Decision decide(const Step& step) {
    const MutexLock lock(mutex_);
    const Phase before = state_.phase();
    Decision decision = step(state_, Clock::now());
    if (state_.phase() != before) {
      log::debug("nccl, generation {}: {}: {}", generation_, name(state_.phase()), decision.reason);
    }
    changed_.notify_all();
    return decision;
  }

  /// \returns what `question` says of the state.
  template <typename Question>
  auto ask(const Question& question) const {
    const MutexLock lock(mutex_);
    return question(state_);
  }

  /// Applies `use`, after which no thread has to wake up.
  template <typename Use>
  void access(const Use& use) {
    const MutexLock lock(mutex_);
    use(state_);
  }

  /// Waits until `done` says so of the state, at most until `until`. Passes the decisions on
  /// deadlines that pass meanwhile to `carry_out`.
  template <typename Done, typename CarryOut>
  void wait(TimePoint until, const Done& done, const CarryOut& carry_out) {
    MutexLock lock(mutex_);
    for (;;) {
      if (done(state_)) return;
      const TimePoint now = Clock::now();
      if (now >= state_.due()) {
        const Decision decision = state_.tick(now);
        changed_.notify_all();
        lock.unlock();
        carry_out(decision);
        lock.lock();
        continue;
      }
      if (now >= until) return;
      // wait_until(TimePoint::max()) would overflow the clock's arithmetic.
      changed_.wait_for(lock, std::min({until, state_.due(), now + std::chrono::hours(1)}) - now);
    }
  }

 private:
  const std::uint64_t generation_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  CommunicatorState state_ ELASTIC_GUARDED_BY(mutex_);
};

}  // namespace elastic::collectives::nccl
