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
  int inherited_fd = -1;                 ///< stays open in the child under its number
  int guardian_pipe = -1;
};

struct ChildProcess {
  pid_t pid = -1;   ///< also its process group
  UniqueFd output;  ///< read ends, not blocking
  UniqueFd errors;
};

/// Starts a process in a group of its own, with its output piped here and its input empty, that the
/// kernel kills when the calling *thread* ends. Fails with what execve(2) said.
Result<ChildProcess> start_child(const ChildCommand& command);

}  // namespace elastic::launcher
