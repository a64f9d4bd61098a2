#pragma once

#include <gloo/context.h>

#include "benchmarks/peers/peer.hpp"

namespace elastic::bench {

/// A Gloo context of all ranks, fully connected by Gloo's own TCP transport.
class GlooMesh : public gloo::Context {
 public:
  /// Returns when this rank is connected to all others. Throws Gloo's exceptions.
  explicit GlooMesh(const PeerStart& start);
};

}  // namespace elastic::bench
