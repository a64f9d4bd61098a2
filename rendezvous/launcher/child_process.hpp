#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "base/status.hpp"
#include "base/unique_fd.hpp"

namespace elastic::launcher {

struct ChildCommand {
  std::string path;
  std::vector<std::string> arguments;    ///< with the program's name first
  std::vector<std::string> environment;  ///< "NAME=value"
  int inherited_fd = -1;  ///< stays open in the child under its number, no other does
  int guardian_pipe = -1;
  bool ignores_signals = false;  ///< SIGINT, SIGTERM and SIGUSR1, until it handles them itself
  bool terminal = false;         ///< its stdout is a pseudo-terminal rather than a pipe
  bool input = false;            ///< its stdin is a pipe from here; otherwise it is empty
};

struct ChildProcess {
  pid_t pid = -1;   ///< also its process group
  UniqueFd output;  ///< read ends, not blocking
  UniqueFd errors;
  std::string no_terminal;  ///< why its stdout is a pipe in spite of `terminal`; empty if it is not
  UniqueFd input = {};      ///< write end, not blocking; none unless it was asked for
};

/// Starts a process in a group of its own, with its output coming here, that the kernel kills
/// when the calling *thread* ends. Fails with what execve(2) said.
Result<ChildProcess> start_child(const ChildCommand& command);

}  // namespace elastic::launcher
