#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/mutex.hpp"
#include "base/process_mark.hpp"
#include "base/status.hpp"
#include "elastic/results.hpp"

namespace elastic::detail {

/// The state behind a Work: the coordinator thread completes it once, and any thread may wait for
/// it.
class WorkState {
 public:
  /// `about_to_block` is called before every wait and look: a thread that waits submits nothing
  /// more to the open buckets.
  explicit WorkState(std::function<void()> about_to_block)
      : about_to_block_(std::move(about_to_block)) {}

  void complete(Result<Contributors> outcome) {
    {
      const MutexLock lock(mutex_);
      outcome_ = std::move(outcome);
    }
    done_.notify_all();
  }

  /// The process that has submitted the operation. In a forked child no thread completes it.
  std::uint64_t process() const { return process_; }

  bool ready() const {
    if (look()) return true;
    about_to_block_();
    return look();
  }
  bool wait_until(std::chrono::steady_clock::time_point deadline) const {
    if (look()) return true;
    about_to_block_();
    MutexLock lock(mutex_);
    return done_.wait_interruptibly_until(
        lock, deadline, [&]() ELASTIC_REQUIRES(mutex_) { return outcome_.has_value(); });
  }
  void wait() const {
    if (look()) return;
    about_to_block_();
    MutexLock lock(mutex_);
    done_.wait_interruptibly(lock, [&]() ELASTIC_REQUIRES(mutex_) { return outcome_.has_value(); });
  }
  /// Requires that it is ready.
  Result<Contributors> outcome() const {
    const MutexLock lock(mutex_);
    return *outcome_;
  }

 private:
  bool look() const {
    const MutexLock lock(mutex_);
    return outcome_.has_value();
  }

  const std::uint64_t process_ = elastic::process_mark();
  const std::function<void()> about_to_block_;
  mutable Mutex mutex_;
  mutable ConditionVariable done_;
  std::optional<Result<Contributors>> outcome_ ELASTIC_GUARDED_BY(mutex_);
};

}  // namespace elastic::detail
