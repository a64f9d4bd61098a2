#pragma once

#include <cstdint>
#include <functional>

#include "base/mutex.hpp"
#include "base/status.hpp"
#include "runtime/participation.hpp"

namespace elastic::runtime {

/// The step boundary, between the training thread and the control thread: counts the steps that
/// this worker has committed, and stops the training thread at the step at which the membership
/// changes.
///
/// Thread-safe. The training thread calls `commit`, and `set_commits` when it has received the
/// state. Any thread may call `close`; the control thread calls the other functions.
class CommitGate {
 public:
  /// The training thread calls `on_paused(round)` when it stops for `round`.
  explicit CommitGate(std::function<void(std::uint64_t round)> on_paused);

  /// Requests a stop when `at_commit` steps are committed. Replaces an earlier request.
  Participation::Promise propose(std::uint64_t round, std::uint64_t at_commit);
  /// Withdraws the request. A thread that has stopped for it stays stopped until `resume`.
  void withdraw();
  /// Releases a stopped thread. A request made since it stopped stays.
  void resume();
  /// Ends training: `commit` returns `reason`, now and later. The first reason stays.
  void close(const Status& reason);

  /// Counts a step, and waits if a stop was requested. Ok: continue. `paused` says whether the
  /// thread had stopped, so that the view may have changed.
  Status commit(bool& paused);

  /// Whether the training thread is stopped for `round`.
  bool paused_for(std::uint64_t round) const;
  std::uint64_t commits() const;
  void set_commits(std::uint64_t commits);

 private:
  const std::function<void(std::uint64_t)> on_paused_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::uint64_t commits_ ELASTIC_GUARDED_BY(mutex_) = 0;
  std::uint64_t stop_at_ ELASTIC_GUARDED_BY(mutex_) = 0;  // 0: no request
  std::uint64_t round_ ELASTIC_GUARDED_BY(mutex_) = 0;
  std::uint64_t paused_round_ ELASTIC_GUARDED_BY(mutex_) = 0;
  bool paused_ ELASTIC_GUARDED_BY(mutex_) = false;
  Status closed_ ELASTIC_GUARDED_BY(mutex_);
};

}  // namespace elastic::runtime
