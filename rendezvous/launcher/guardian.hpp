#pragma once

#include <cstdint>

#include <sys/types.h>

#include "base/status.hpp"
#include "base/unique_fd.hpp"

namespace elastic::launcher {

/// A small process that outlives the launcher by a moment: it reads from a pipe which process
/// groups exist, and when the pipe closes, however the launcher ended, kills those that are left.
/// Workers are besides killed by the kernel (PR_SET_PDEATHSIG); the guardian gets what they
/// started.
///
/// Owned by the launcher's main thread.
class Guardian {
 public:
  Guardian() = default;
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;
  /// Waits until the process has ended.
  ~Guardian();

  /// Forks. Before any thread is started.
  Status start();

  /// A process writes its own pid here when it has made its group, before it runs anything else,
  /// so that no group is ever unknown. Async-signal-safe.
  static void enrol(int pipe, pid_t group) noexcept;
  /// Before the group's leader is reaped: its number may be used again afterwards.
  static void forget(int pipe, pid_t group) noexcept;
  int pipe() const { return pipe_.get(); }

 private:
  [[noreturn]] static void watch(int pipe) noexcept;

  UniqueFd pipe_;
  pid_t pid_ = -1;
};

}  // namespace elastic::launcher
