#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "base/status.hpp"
#include "runtime/participation.hpp"

namespace elastic::runtime {

/// Where the training thread and the control thread meet between two steps: counts the steps this
/// worker has committed, and holds the training thread at the one at which the membership changes.
///
/// Thread-safe: `commit` comes from the training thread, everything else from the control thread.
class CommitGate {
 public:
  /// `on_paused(round)` is called by the training thread when it stops for `round`.
  explicit CommitGate(std::function<void(std::uint64_t round)> on_paused);

  /// Asks to stop when `at_commit` steps are committed. Replaces an earlier request.
  Participation::Promise propose(std::uint64_t round, std::uint64_t at_commit);
  /// Withdraws the request; a thread that has stopped for it stays so until `resume`.
  void withdraw();
  /// Lets a thread that is stopped go on. A request made since it stopped stays.
  void resume();
  /// Nobody will go on here any more: `commit` returns `reason`, now and later. The first one
  /// stays.
  void close(const Status& reason);

  /// Counts a step and, where asked to, waits. Ok: go on (`paused` tells whether it had stopped,
  /// that is, whether the view may have changed).
  Status commit(bool& paused);

  /// True while the training thread is stopped for `round`.
  bool paused_for(std::uint64_t round) const;
  std::uint64_t commits() const;
  void set_commits(std::uint64_t commits);

 private:
  const std::function<void(std::uint64_t)> on_paused_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t commits_ = 0;
  std::uint64_t stop_at_ = 0;  // 0: no request
  std::uint64_t round_ = 0;
  std::uint64_t paused_round_ = 0;
  bool paused_ = false;
  Status closed_;
};

}  // namespace elastic::runtime
