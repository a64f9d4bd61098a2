#pragma once

#include <map>
#include <string>
#include <vector>

#include "rendezvous/launcher/launch_options.hpp"

namespace elastic::launcher {

/// The environment of a worker, as "NAME=value": the launcher's own environment, and on top of it
/// where the job is and which slot this is. RANK and WORLD_SIZE are those at the start; the job's
/// view replaces them.
std::vector<std::string> worker_environment(std::map<std::string, std::string> inherited,
                                            const LaunchOptions& options,
                                            const std::string& address, int slot, int attempt,
                                            int secret_fd);

/// The launcher's name for a slot, as `ctl status` shows it.
inline std::string slot_label(int slot) {
  return "slot-" + std::to_string(slot);
}

}  // namespace elastic::launcher
