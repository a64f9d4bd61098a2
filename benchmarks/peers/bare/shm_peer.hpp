#pragma once

#include <memory>

#include "base/status.hpp"
#include "benchmarks/peers/peer.hpp"
#include "collectives/kernels/store.hpp"

namespace elastic::bench {

struct ShmWay {
  kernels::Store store;      ///< how the memory is filled that the ranks have in common
  bool keeps_input = false;  ///< which a call in place overwrites; of large tensors
};

/// An allreduce through memory of one host. kUnavailable where the ranks have none in common.
Result<std::unique_ptr<Peer>> open_shm_peer(const PeerStart& start, const ShmWay& way);

}  // namespace elastic::bench
