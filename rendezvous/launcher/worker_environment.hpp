#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
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
/// Reverse of it; none for a label that a program has chosen.
std::optional<int> slot_of(std::string_view label);

}  // namespace elastic::launcher
