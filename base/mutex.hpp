#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/clock.hpp"
#include "base/interrupt.hpp"
#include "base/thread_annotations.hpp"

namespace elastic {

/// std::mutex, for fields that are ELASTIC_GUARDED_BY it. Held by a MutexLock.
class ELASTIC_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

/// Holds a Mutex from construction to destruction, but for the time between `unlock` and `lock`.
class ELASTIC_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ELASTIC_ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() ELASTIC_RELEASE() {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void unlock() ELASTIC_RELEASE() { lock_.unlock(); }
  void lock() ELASTIC_ACQUIRE() { lock_.lock(); }

 private:
  friend class ConditionVariable;
  std::unique_lock<std::mutex> lock_;
};

/// std::condition_variable for a MutexLock, which has to be held. A condition reads what the mutex
/// guards: `changed_.wait(lock, [&]() ELASTIC_REQUIRES(mutex_) { return ready_; })`.
class ConditionVariable {
 public:
  template <typename Condition>
  void wait(MutexLock& lock, Condition condition) {
    changed_.wait(lock.lock_, std::move(condition));
  }
  /// Returns on a notification, after `limit`, or for no reason.
  template <typename Rep, typename Period>
  void wait_for(MutexLock& lock, std::chrono::duration<Rep, Period> limit) {
    changed_.wait_for(lock.lock_, limit);
  }
  /// \returns whether the condition came true in time.
  template <typename Rep, typename Period, typename Condition>
  bool wait_for(MutexLock& lock, std::chrono::duration<Rep, Period> limit, Condition condition) {
    return changed_.wait_for(lock.lock_, limit, std::move(condition));
  }
  /// \returns whether the condition came true in time.
  template <typename Clock, typename Duration, typename Condition>
  bool wait_until(MutexLock& lock, std::chrono::time_point<Clock, Duration> deadline,
                  Condition condition) {
    return changed_.wait_until(lock.lock_, deadline, std::move(condition));
  }
  /// `wait` for threads of the program: calls their InterruptCheck meanwhile, without the lock. Its
  /// exceptions leave this function with the lock held.
  template <typename Condition>
  void wait_interruptibly(MutexLock& lock, Condition condition) {
    while (has_interrupt_check()) {
      if (changed_.wait_for(lock.lock_, kInterruptCheckEvery, condition)) return;
      check_interrupt_without(lock.lock_);
    }
    changed_.wait(lock.lock_, std::move(condition));
  }
  /// `wait_until` for threads of the program.
  template <typename Condition>
  bool wait_interruptibly_until(MutexLock& lock, TimePoint deadline, Condition condition) {
    while (has_interrupt_check() && Clock::now() + kInterruptCheckEvery < deadline) {
      if (changed_.wait_for(lock.lock_, kInterruptCheckEvery, condition)) return true;
      check_interrupt_without(lock.lock_);
    }
    return changed_.wait_until(lock.lock_, deadline, std::move(condition));
  }
  void notify_all() noexcept { changed_.notify_all(); }

 private:
  static void check_interrupt_without(std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    try {
      check_interrupt();
    } catch (...) {
      lock.lock();
      throw;
    }
    lock.lock();
  }

  std::condition_variable changed_;
};

}  // namespace elastic
