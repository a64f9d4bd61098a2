#pragma once

#include <string>
#include <vector>

#include "base/status.hpp"

namespace elastic::bench {

/// What --backend accepts besides elastic's backends: "library:variant".
const std::vector<std::string>& peer_names();

bool is_peer(const std::string& name);
/// Whether a peer takes tensors on CUDA devices, and no others.
bool takes_devices(const std::string& peer);
/// The backends among `names`, each of which needs a job.
std::vector<std::string> without_peers(const std::vector<std::string>& names);

/// kInvalidArgument when one of `names` has the form of a peer's and is none; lists those there
/// are.
Status check_peer_names(const std::vector<std::string>& names);

}  // namespace elastic::bench
