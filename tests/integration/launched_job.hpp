#pragma once

#include <string>
#include <vector>

#include "integration/job.hpp"

namespace elastic::testing {

/// A job under elasticrun, in a folder of its own.
class LaunchedJob {
 public:
  LaunchedJob() = default;

  /// `command` is elasticrun's: options and the worker. `environment` is added to the present one.
  void start(const std::vector<std::string>& command, std::vector<std::string> environment = {});

  Job& launcher() { return *job_; }
  const std::filesystem::path& folder() const { return scratch_.path(); }
  std::string output() const { return job_->output(); }

  /// `elasticrun ctl`; true if it succeeded.
  bool control(const std::vector<std::string>& arguments, std::string* output = nullptr);

 private:
  std::vector<std::string> with_private_folder(std::vector<std::string> environment) const;

  ScratchFolder scratch_;
  std::optional<Job> job_;
};

}  // namespace elastic::testing
