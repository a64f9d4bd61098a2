#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/types.h>

#include "integration/launched_job.hpp"

namespace elastic::testing {

/// A run of train_digits under elasticrun, and what its workers write.
class DigitsJob {
 public:
  /// `options` are elasticrun's, `arguments` are the trainer's. `environment` is added to the
  /// present one.
  DigitsJob(const std::vector<std::string>& options, const std::vector<std::string>& arguments,
            const std::vector<std::string>& environment = {});

  /// Waits until as many live workers have each made `steps` steps themselves; false after a long
  /// time.
  bool wait_until_stepped(std::size_t workers, std::size_t steps);

  /// Kills a live worker that has made steps, with SIGKILL.
  void kill_one();
  /// Waits until a worker that was to kill itself has; false after a long time.
  bool wait_until_self_destructed();

  bool control(const std::vector<std::string>& arguments) { return job_.control(arguments); }

  /// Waits for the end: elasticrun's exit status, -1 if it hangs.
  int finish();
  /// The reports of the workers that came to the end.
  std::vector<nlohmann::json> reports() const { return lines("report-"); }
  /// The trace of all steps of all workers.
  std::vector<nlohmann::json> trace() const { return lines("trace-"); }
  std::string output() const { return job_.output(); }

 private:
  /// Whole lines of the file that each worker has written under this name, by its process id.
  std::map<pid_t, std::vector<std::string>> files(const std::string& prefix) const;
  std::vector<nlohmann::json> lines(const std::string& prefix) const;
  /// Live workers that have made so many steps.
  std::vector<pid_t> stepped(std::size_t steps) const;

  std::set<pid_t> dead_;
  LaunchedJob job_;
};

}  // namespace elastic::testing
