#pragma once

#include <string>
#include <vector>

#include "base/status.hpp"

namespace elastic::bench {

/// The names "library:variant" that --backend accepts besides elastic's backends.
const std::vector<std::string>& peer_names();

bool is_peer(const std::string& name);
/// Whether a peer takes tensors on CUDA devices; it then takes no tensors in host memory.
bool takes_devices(const std::string& peer);
/// The elastic backends among `names`, each of which needs a job.
std::vector<std::string> without_peers(const std::vector<std::string>& names);

/// kInvalidArgument if one of `names` has the form of a peer's name but is unknown. The error lists
/// the peers.
Status check_peer_names(const std::vector<std::string>& names);

}  // namespace elastic::bench
