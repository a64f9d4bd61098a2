#pragma once

#include <map>
#include <string>
#include <vector>

#include "rendezvous/launcher/launch_options.hpp"

namespace elastic::launcher {

/// A job, and a launcher's place in it.
struct JobPlace {
  std::string address;  ///< of the server
  std::string name;
  int launcher = 0;    ///< this launcher's number
  int processors = 1;  ///< that this launcher and its workers may use
};

/// The environment of a worker, as "NAME=value": the launcher's own environment, and on top of it
/// where the job is and which slot this is. RANK and WORLD_SIZE are those at the start; the job's
/// view replaces them. They are missing where other launchers start workers, too, since
/// none knows those of the others. Workers share the processors: see OMP_NUM_THREADS.
std::vector<std::string> worker_environment(std::map<std::string, std::string> inherited,
                                            const LaunchOptions& options, const JobPlace& job,
                                            int slot, int attempt, int secret_fd);

/// "NAME=value" for each variable, as execve(2) takes them.
std::vector<std::string> variables(const std::map<std::string, std::string>& environment);

}  // namespace elastic::launcher
