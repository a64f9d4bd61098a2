#pragma once

#include <memory>

#include "base/status.hpp"
#include "benchmarks/peers/peer.hpp"

namespace elastic::bench {

/// A ring allreduce over one TCP connection to each neighbour, by the calling thread alone.
/// kUnavailable if the ranks cannot be connected.
Result<std::unique_ptr<Peer>> open_tcp_peer(const PeerStart& start);

}  // namespace elastic::bench
