#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "integration/job.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {

/// A command that has been run to its end, in a scratch folder.
struct Ended {
  int status = -1;  ///< -1: it hung
  std::string output;
};

inline Ended run(const std::vector<std::string>& command,
                 std::vector<std::string> environment = {}) {
  const ScratchFolder folder;
  environment.push_back("XDG_RUNTIME_DIR=" + folder.path().string());
  Job job(command, folder.path() / "output", environment);
  const int status = job.wait(std::chrono::milliseconds(40000) * kHangFactor).value_or(-1);
  return {status, job.output()};
}

}  // namespace elastic::testing
