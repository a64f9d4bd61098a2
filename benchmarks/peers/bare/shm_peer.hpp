#pragma once

#include <memory>

#include "base/status.hpp"
#include "benchmarks/peers/peer.hpp"
#include "collectives/kernels/store.hpp"

namespace elastic::bench {

/// An allreduce through memory of one host, which is filled by such stores. kUnavailable where the
/// ranks do not have that in common.
Result<std::unique_ptr<Peer>> open_shm_peer(const PeerStart& start, kernels::Store store);

}  // namespace elastic::bench
