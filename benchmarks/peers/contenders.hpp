#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "benchmarks/collective/collective_options.hpp"
#include "benchmarks/job/backend_contexts.hpp"
#include "benchmarks/job/rank_device.hpp"
#include "benchmarks/peers/peer.hpp"
#include "elastic/context.hpp"

namespace elastic::bench {

/// One of the backends and peers that are measured in turn.
struct Contender {
  std::string label;
  Context& context;            ///< measured if `peer` is null; otherwise for the ranks' barriers
  std::unique_ptr<Peer> peer;  ///< the measured peer, or null
  std::string library;         ///< the peer's library with its version
};

/// Makes the contenders `names`, in order. Each backend has its own one of `contexts`; peers use
/// the first. `device` is null for host memory. All ranks call it with the same arguments.
Result<std::vector<Contender>> make_contenders(const std::vector<std::string>& names,
                                               const CollectiveOptions& options,
                                               const std::vector<BackendContext>& contexts,
                                               const RankDevice* device);

/// A line for the output about each peer; empty if there is none.
std::string peers_text(const std::vector<Contender>& contenders);

}  // namespace elastic::bench
