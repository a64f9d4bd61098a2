#pragma once

#include <string>

#include "rendezvous/hosts/host_supervision.hpp"

namespace elastic::hosts {

/// Why an agent has ended, for people. `was_running`: the server had known it.
std::string reason_of_end(const AgentEnded& event, bool was_running);

}  // namespace elastic::hosts
