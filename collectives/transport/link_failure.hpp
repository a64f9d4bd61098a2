#pragma once

#include <string>

#include "base/status.hpp"
#include "collectives/transport/peer.hpp"

namespace elastic::transport {

/// Why there is no link with `peer`, and what to do about it, for the log and the server. Pure.
/// `own` are this worker's endpoints; `last_try` is the failure of the last dial, null if this
/// worker did not dial.
std::string describe_missing_link(const Peer& peer, const Endpoints& own, const Status* last_try);

}  // namespace elastic::transport
