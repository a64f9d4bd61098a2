#pragma once

#include <gloo/context.h>

#include "benchmarks/peers/peer.hpp"

namespace elastic::bench {

/// All ranks, each connected to each by Gloo's own TCP transport.
class GlooMesh : public gloo::Context {
 public:
  /// Returns when this rank is connected with all others. Throws what Gloo throws.
  explicit GlooMesh(const PeerStart& start);
};

}  // namespace elastic::bench
