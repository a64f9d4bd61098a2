#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/status.hpp"
#include "rendezvous/launcher/console.hpp"
#include "rendezvous/launcher/worker_output.hpp"

namespace elastic::launcher {

/// The output of each worker of this launcher by slot, kept when a worker is replaced.
///
/// Owned by the launcher's thread.
class WorkerOutputs {
 public:
  /// Where the lines go, and what stands before them.
  struct Place {
    std::string folder;  ///< of files; empty: the console
    bool prefix = true;  ///< "[slot] " before each line
    std::string host;    ///< before the slot; empty where the job has one launcher
  };
  WorkerOutputs(Place place, Console& console) : place_(std::move(place)), console_(console) {}

  /// Makes the folder. kUnavailable: that failed.
  Status prepare() const;
  /// For a worker that begins. `label` names it among all of the job: "slot-3", "slot-2.0".
  Result<WorkerOutput*> of(int slot, const std::string& label);
  /// Shows the last lines of a worker that has ended. `how`: "exited with code 3".
  void show_last_lines(int slot, const std::string& how);

 private:
  const Place place_;
  Console& console_;
  std::map<int, std::unique_ptr<WorkerOutput>> outputs_;
};

}  // namespace elastic::launcher
