#pragma once

#include <string>

namespace elastic::launcher {

/// How a process ended: by exiting with `code`, or by `signal` when that is not 0.
struct ExitStatus {
  int code = 0;
  int signal = 0;

  static ExitStatus from_wait(int wait_status);
  bool ok() const { return code == 0 && signal == 0; }
  /// By a signal that others send, rather than by its own doing.
  bool killed() const;
  /// "exited with code 3", "died of signal 9 (Killed)".
  std::string text() const;

  bool operator==(const ExitStatus&) const = default;
};

}  // namespace elastic::launcher
