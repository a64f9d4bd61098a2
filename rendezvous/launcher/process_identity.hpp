#pragma once

#include <cstdint>
#include <optional>

#include <sys/types.h>

namespace elastic::launcher {

/// When a process started, in clock ticks since boot; none if it is not there, or is a zombie.
std::optional<std::uint64_t> start_time_of(pid_t pid);

/// Whether a signal such as SIGSTOP, or a debugger, has stopped the process.
bool is_stopped(pid_t pid);

/// A process as files name it: the number alone may have been used again since.
struct ProcessIdentity {
  pid_t pid = 0;
  std::uint64_t start_time = 0;

  static ProcessIdentity of_this_process();
  bool alive() const { return start_time_of(pid) == start_time; }
  bool operator==(const ProcessIdentity&) const = default;
};

}  // namespace elastic::launcher
