#include "integration/launched_job.hpp"

#include "tests/slowness.hpp"

namespace elastic::testing {

void LaunchedJob::start(const std::vector<std::string>& command,
                        std::vector<std::string> environment) {
  std::vector<std::string> whole{ELASTICRUN};
  whole.insert(whole.end(), command.begin(), command.end());
  job_.emplace(whole, folder() / "output", with_private_folder(std::move(environment)));
}

std::vector<std::string> LaunchedJob::with_private_folder(
    std::vector<std::string> environment) const {
  environment.push_back("XDG_RUNTIME_DIR=" + folder().string());
  return environment;
}

bool LaunchedJob::control(const std::vector<std::string>& arguments, std::string* output) {
  std::vector<std::string> command{ELASTICRUN, "ctl"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const ScratchFolder scratch;
  Job ctl(command, scratch.path() / "output", with_private_folder({}));
  const bool succeeded = ctl.wait(std::chrono::milliseconds(30000) * kHangFactor) == 0;
  if (output != nullptr) *output = ctl.output();
  return succeeded;
}

}  // namespace elastic::testing
