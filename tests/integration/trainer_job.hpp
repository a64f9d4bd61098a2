#pragma once

#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

#include "integration/launched_job.hpp"

namespace elastic::testing {

/// A run of the worker program elastic_trainer, and what its workers told of themselves.
class TrainerJob {
 public:
  /// `options` are elasticrun's, `mode` is the worker's.
  explicit TrainerJob(const std::vector<std::string>& options, const std::string& mode = {},
                      std::vector<std::string> environment = {});

  Job& launcher() { return job_.launcher(); }
  const std::filesystem::path& folder() const { return job_.folder(); }
  std::string output() const { return job_.output(); }
  /// The rendezvous server's address, as the workers were told it.
  std::string address() const { return read_file(folder() / "address"); }

  /// `elasticrun ctl`; true if it succeeded.
  bool control(const std::vector<std::string>& arguments, std::string* output = nullptr) {
    return job_.control(arguments, output);
  }

  /// Waits until as many workers have entered the training, or have made some steps in it, since
  /// the start of the job; false after a long time.
  bool wait_until_entered(std::size_t workers);
  bool wait_until_trained(std::size_t workers);
  /// Waits for one more worker to tell its result.
  bool wait_until_ended(std::size_t workers);

  /// The process that was last in this slot.
  pid_t pid(int slot) const;
  /// The workers' reports of this kind, by process id.
  std::map<pid_t, std::string> told(const std::string& what) const;

  /// Lets the training end, and waits for the launcher: its exit status, -1 if it hangs.
  int finish();

 private:
  bool wait_for(const std::string& what, std::size_t workers);

  LaunchedJob job_;
};

}  // namespace elastic::testing
