#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "benchmarks/backend_contexts.hpp"
#include "benchmarks/collective_options.hpp"
#include "benchmarks/peers/peer.hpp"
#include "benchmarks/rank_device.hpp"
#include "elastic/context.hpp"

namespace elastic::bench {

/// One of those that are measured in turn.
struct Contender {
  std::string label;
  Context& context;  ///< where the ranks meet, and what is measured where there is no peer
  std::unique_ptr<Peer> peer;  ///< what is measured instead
  std::string library;         ///< the peer's, with its version
};

/// `names`, in order: the backends, each with its one of `contexts`, and the peers, whose ranks
/// meet in the first. `device` is null where tensors lie in host memory. All ranks call it alike.
Result<std::vector<Contender>> make_contenders(const std::vector<std::string>& names,
                                               const CollectiveOptions& options,
                                               const std::vector<BackendContext>& contexts,
                                               const RankDevice* device);

/// A line about each peer, for people; empty where there is none.
std::string peers_text(const std::vector<Contender>& contenders);

}  // namespace elastic::bench
