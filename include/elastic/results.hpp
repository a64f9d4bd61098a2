#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "elastic/detail/export.hpp"

namespace elastic {

/// Names one worker process for its whole life. Never reused: a restarted worker has another one.
using WorkerId = std::uint64_t;

/// The workers that took part in a collective: exactly those with a contribution to its result. The
/// same on every rank that returned from the call. A cheap value; immutable.
class Contributors {
 public:
  Contributors() = default;
  Contributors(std::shared_ptr<const std::vector<WorkerId>> workers, std::uint64_t generation)
      : workers_(std::move(workers)), generation_(generation) {}

  /// Number of workers.
  std::size_t size() const noexcept { return workers_ ? workers_->size() : 0; }
  /// In the order of their ranks in the view of `generation()`.
  std::span<const WorkerId> workers() const noexcept {
    return workers_ ? std::span<const WorkerId>(*workers_) : std::span<const WorkerId>();
  }
  /// The generation of the view in which the call was completed.
  std::uint64_t generation() const noexcept { return generation_; }

 private:
  std::shared_ptr<const std::vector<WorkerId>> workers_;
  std::uint64_t generation_ = 0;
};

namespace detail {
class WorkState;
}

/// An asynchronous operation under way. A cheap handle; copies refer to the same operation. All
/// functions may be called from any thread. Destroying it does not cancel the operation, but the
/// tensors must live until it is complete.
///
/// It is complete when the results lie in the tensors, those on CUDA devices too: what is queued
/// there afterwards, on any stream, sees them.
class ELASTIC_API Work {
 public:
  Work() = default;
  explicit Work(std::shared_ptr<detail::WorkState> state);

  /// Blocks until the operation is complete; returns its contributors. Throws elastic::Error if it
  /// failed, the same on every call.
  Contributors wait() const;

  /// Like `wait`, for at most `timeout`; returns whether the operation is complete. Throws like
  /// `wait`. Giving up does not cancel it.
  bool wait_for(std::chrono::nanoseconds timeout) const;
  bool wait_until(std::chrono::steady_clock::time_point deadline) const;

  /// Whether it is complete, successfully or not. Never blocks, never throws. Where it is not, what
  /// has been submitted so far is sent, as by `wait`, though a bucket is not full: a loop that
  /// polls comes to an end.
  bool ready() const noexcept;

  /// The contributors. Only after completion; throws kInvalidArgument before.
  Contributors contributors() const;

 private:
  std::shared_ptr<detail::WorkState> state_;
};

}  // namespace elastic
