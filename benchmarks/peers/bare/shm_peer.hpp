#pragma once

#include <memory>

#include "base/status.hpp"
#include "benchmarks/peers/peer.hpp"
#include "collectives/kernels/store.hpp"

namespace elastic::bench {

struct ShmWay {
  kernels::Store store;      ///< the kind of stores to shared memory
  bool keeps_input = false;  ///< copies the input of large tensors that a call overwrites in place
};

/// An allreduce through shared memory. kUnavailable if the ranks are not on one host.
Result<std::unique_ptr<Peer>> open_shm_peer(const PeerStart& start, const ShmWay& way);

}  // namespace elastic::bench
