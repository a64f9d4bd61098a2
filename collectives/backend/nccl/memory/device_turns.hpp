#pragma once

#include <utility>

#include "base/clock.hpp"
#include "base/counted.hpp"
#include "base/mutex.hpp"

namespace elastic::collectives::nccl {

/// Turns to use a device: one thread at a time has one.
///
/// Any thread. A std::timed_mutex would do, but ThreadSanitizer does not know its waits.
class DeviceTurns {
 public:
  /// Is given back in the end. Empty: it was not to be had.
  class Turn {
   public:
    Turn() = default;
    explicit Turn(DeviceTurns* turns) : turns_(turns) {}
    Turn(Turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)) {}
    Turn& operator=(Turn&& other) noexcept {
      std::swap(turns_, other.turns_);
      return *this;
    }
    ~Turn() { give_back(); }

    explicit operator bool() const { return turns_ != nullptr; }
    void give_back() {
      if (turns_ != nullptr) std::exchange(turns_, nullptr)->end();
    }

   private:
    DeviceTurns* turns_ = nullptr;
  };

  /// Waits for a turn, at most so long. Longer-lived than the turn.
  Turn take(Duration most) {
    MutexLock lock(mutex_);
    const Counted waiting(waiting_);
    const bool in_time = ended_.wait_until(lock, Clock::now() + most,
                                           [&]() ELASTIC_REQUIRES(mutex_) { return !taken_; });
    if (!in_time) return Turn();
    taken_ = true;
    return Turn(this);
  }

  /// Whether a thread waits for a turn.
  bool are_awaited() {
    const MutexLock lock(mutex_);
    return waiting_ > 0;
  }

 private:
  void end() {
    {
      const MutexLock lock(mutex_);
      taken_ = false;
    }
    ended_.notify_all();
  }

  Mutex mutex_;
  ConditionVariable ended_;
  bool taken_ ELASTIC_GUARDED_BY(mutex_) = false;
  int waiting_ ELASTIC_GUARDED_BY(mutex_) = 0;
};

}  // namespace elastic::collectives::nccl
