#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "elastic/detail/export.hpp"
#include "elastic/results.hpp"
#include "elastic/types.hpp"

namespace elastic {

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
  /// No operation: every function but `ready` throws kInvalidArgument.
  Work() = default;
  /// For the library.
  explicit Work(std::shared_ptr<detail::WorkState> state);

  /// Blocks until the operation is complete.
  /// \returns the operation's contributors.
  /// \throws Error of the operation if it failed, the same on every call. A collective's codes are
  ///   in Context's description.
  Contributors wait() const;

  /// Like `wait`, but does not wait for a CUDA device: what is queued on `stream` after this call
  /// sees the results, and the host goes on. Blocks until all members have the operation, so that
  /// no death changes the results any more. The same as `wait` if no result is on its way on a
  /// device.
  /// \param stream of the device on which the tensors are.
  /// \returns the operation's contributors.
  /// \throws Error as `wait`; kInvalidArgument: a stream that cannot be waited for, which does not
  ///   change the operation.
  Contributors wait(CudaStream stream) const;

  /// Like `wait`, but gives up after `timeout` or at `deadline`, which does not cancel the
  /// operation.
  /// \returns whether the operation is complete.
  /// \throws Error as `wait`.
  /// \{
  bool wait_for(std::chrono::nanoseconds timeout) const;
  bool wait_until(std::chrono::steady_clock::time_point deadline) const;
  /// \}

  /// Looks whether the operation is complete, without blocking. If it is not, everything that was
  /// submitted so far is sent, as by `wait`, even if a bucket is not full; so a loop that polls
  /// comes to an end.
  /// \returns whether it is complete, successfully or not.
  bool ready() const noexcept;

  /// \returns the contributors of the operation, which is complete or was waited for.
  /// \throws Error kInvalidArgument if it is neither; as `wait` if it failed.
  Contributors contributors() const;

  /// Calls `continuation` once, with this Work, when the operation is complete, successfully or
  /// not: on the thread of the library that completed it, or at once on this one. Other operations
  /// wait meanwhile, so it should be short. In it collectives, waits for operations that are not
  /// complete, `run` and `shutdown` throw Error(kInvalidArgument). An exception that leaves it is
  /// logged.
  /// \throws Error kInvalidArgument for no operation, and for no function.
  void then(std::function<void(const Work&)> continuation) const;

 private:
  friend ELASTIC_API std::size_t wait_any(std::span<const Work> works);

  std::shared_ptr<detail::WorkState> state_;
};

/// Blocks until all operations are complete.
/// \throws Error of the first, in their order, that failed; all are complete then, too.
ELASTIC_API void wait_all(std::span<const Work> works);

/// Blocks until one of the operations is complete, successfully or not.
/// \returns its index: the lowest, if several are complete.
/// \throws Error kInvalidArgument if there is none, or one of them is no operation.
ELASTIC_API std::size_t wait_any(std::span<const Work> works);

/// An asynchronous operation with a result besides its contributors. A cheap handle like Work.
template <typename Result>
class Pending {
 public:
  /// No operation.
  Pending() = default;
  /// For the library: `result` is filled in before `work` is complete.
  Pending(Work work, std::shared_ptr<Result> result)
      : work_(std::move(work)), result_(std::move(result)) {}

  /// Blocks until the operation is complete.
  /// \returns its result; a copy, unless this handle is about to end.
  /// \throws Error as Work::wait.
  /// \{
  Result wait() const& {
    Contributors contributors = work_.wait();
    Result result = *result_;
    result.contributors = std::move(contributors);
    return result;
  }
  Result wait() && {
    Contributors contributors = work_.wait();
    Result result = std::move(*result_);
    result.contributors = std::move(contributors);
    return result;
  }
  /// \}

  /// \returns whether the operation is complete, as Work::ready.
  bool ready() const noexcept { return work_.ready(); }
  /// \returns the operation, for its other functions and for `wait_all`.
  const Work& work() const noexcept { return work_; }

 private:
  Work work_;
  std::shared_ptr<Result> result_;
};

}  // namespace elastic
