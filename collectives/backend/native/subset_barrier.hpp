#pragma once

#include <vector>

#include "base/status.hpp"
#include "collectives/transport/mesh.hpp"

namespace elastic::collectives {

/// A barrier among some ranks of a mesh, in the operation that has begun: each rank sends an empty
/// message to each other rank and waits for theirs. `ranks` contains this rank. Fails like a link;
/// then the mesh must be abandoned.
Status subset_barrier(transport::Mesh& mesh, const std::vector<int>& ranks);

}  // namespace elastic::collectives
