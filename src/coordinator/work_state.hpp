#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/mutex.hpp"
#include "base/process_mark.hpp"
#include "base/status.hpp"
#include "collectives/device/landing.hpp"
#include "elastic/results.hpp"
#include "elastic/types.hpp"

namespace elastic::detail {

/// The state behind a Work: one thread of the library completes it once, and any thread may wait
/// for it.
class WorkState {
 public:
  /// `about_to_block` is called before every wait and look: a thread that waits submits nothing
  /// more to the open buckets.
  explicit WorkState(std::function<void()> about_to_block)
      : about_to_block_(std::move(about_to_block)) {}

  void complete(Result<Contributors> outcome) { end({std::move(outcome), nullptr}); }
  /// All ranks have the operation, and the device is about to bring its results to the tensors. It
  /// is complete when `landing` is over. `staged`: its own ones among those tensors; null if all
  /// are in host memory.
  void complete(Contributors contributors, std::shared_ptr<device::Landing> landing,
                std::shared_ptr<device::StagedTensors> staged) {
    end({std::move(contributors), nullptr, std::move(landing), std::move(staged)});
  }
  /// The operation ended in an exception, which each wait throws.
  void fail(std::exception_ptr exception) {
    end({Status(Code::kInternal, "it has ended in an exception"), std::move(exception)});
  }

  /// Calls `then` when the operation is complete: on the thread that completes it, or at once on
  /// this one. `then` throws nothing, and does not wait. \returns a number for `forget`.
  std::uint64_t when_complete(std::function<void()> then) {
    {
      const MutexLock lock(mutex_);
      if (!outcome_) {
        continuations_.emplace(++last_continuation_, std::move(then));
        return last_continuation_;
      }
    }
    if (const auto landing = landing_now()) (void)landing->wait();
    then();
    return 0;
  }
  /// Forgets what `when_complete` was given, unless it has been called or is being called.
  void forget(std::uint64_t continuation) {
    const MutexLock lock(mutex_);
    continuations_.erase(continuation);
  }

  /// The process that has submitted the operation. In a forked child no thread completes it.
  std::uint64_t process() const { return process_; }

  bool ready() const {
    if (!look()) about_to_block_();
    if (!look()) return false;
    const auto landing = landing_now();
    return !landing || landing->is_over();
  }
  bool wait_until(std::chrono::steady_clock::time_point deadline) const {
    if (!look()) {
      about_to_block_();
      MutexLock lock(mutex_);
      const bool in_time = done_.wait_interruptibly_until(
          lock, deadline, [&]() ELASTIC_REQUIRES(mutex_) { return outcome_.has_value(); });
      if (!in_time) return false;
    }
    return lands_until(deadline);
  }
  void wait() const {
    wait_for_all_ranks();
    if (const auto landing = landing_now()) (void)landing->wait();
  }
  bool all_ranks_have_it() const { return look(); }
  /// Waits until all ranks have the operation; its results may still be on their way on a device.
  void wait_for_all_ranks() const {
    if (look()) return;
    about_to_block_();
    MutexLock lock(mutex_);
    done_.wait_interruptibly(lock, [&]() ELASTIC_REQUIRES(mutex_) { return outcome_.has_value(); });
  }
  /// After that: has what is queued on `stream` from now on wait for the results. The error of the
  /// operation if they will never come.
  Status put_behind(CudaStream stream) const {
    std::shared_ptr<device::StagedTensors> staged;
    {
      const MutexLock lock(mutex_);
      if (outcome_) staged = outcome_->staged;
    }
    const auto landing = landing_now();
    return landing && staged ? landing->put_behind(*staged, stream) : Status();
  }
  /// As `wait`, whatever an InterruptCheck says.
  void wait_regardless() const {
    {
      MutexLock lock(mutex_);
      done_.wait(lock, [&]() ELASTIC_REQUIRES(mutex_) { return outcome_.has_value(); });
    }
    if (const auto landing = landing_now()) (void)landing->wait();
  }
  /// Throws the exception in which the operation ended, if it was one. Requires that it is ready.
  Result<Contributors> outcome() const {
    if (const auto landing = landing_now()) {
      if (Status lost = landing->wait(); !lost.ok()) return lost;
    }
    return outcome_of_all_ranks();
  }
  /// The same, after `wait_for_all_ranks`.
  Result<Contributors> outcome_of_all_ranks() const {
    const MutexLock lock(mutex_);
    if (outcome_->exception) std::rethrow_exception(outcome_->exception);
    return outcome_->result;
  }

 private:
  struct Outcome {
    Result<Contributors> result;
    std::exception_ptr exception;
    std::shared_ptr<device::Landing> landing = nullptr;
    std::shared_ptr<device::StagedTensors> staged = nullptr;
  };

  void end(Outcome outcome) {
    std::map<std::uint64_t, std::function<void()>> continuations;
    const std::shared_ptr<device::Landing> landing = outcome.landing;
    {
      const MutexLock lock(mutex_);
      outcome_ = std::move(outcome);
      continuations.swap(continuations_);
    }
    done_.notify_all();
    if (landing && !continuations.empty()) (void)landing->wait();
    for (const auto& [number, then] : continuations) then();
  }
  bool look() const {
    const MutexLock lock(mutex_);
    return outcome_.has_value();
  }
  /// Null: there is none, or all ranks do not have the operation yet.
  std::shared_ptr<device::Landing> landing_now() const {
    const MutexLock lock(mutex_);
    return outcome_ ? outcome_->landing : nullptr;
  }
  /// CUDA has no wait with a deadline.
  bool lands_until(std::chrono::steady_clock::time_point deadline) const {
    constexpr std::chrono::microseconds kPause(50);
    const auto landing = landing_now();
    while (landing && !landing->is_over()) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      std::this_thread::sleep_for(kPause);
    }
    return true;
  }

  const std::uint64_t process_ = elastic::process_mark();
  const std::function<void()> about_to_block_;
  mutable Mutex mutex_;
  mutable ConditionVariable done_;
  std::optional<Outcome> outcome_ ELASTIC_GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::function<void()>> continuations_ ELASTIC_GUARDED_BY(mutex_);
  std::uint64_t last_continuation_ ELASTIC_GUARDED_BY(mutex_) = 0;
};

}  // namespace elastic::detail
