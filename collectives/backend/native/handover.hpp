#pragma once

#include <vector>

#include "base/status.hpp"
#include "collectives/backend/backend.hpp"
#include "collectives/transport/mesh.hpp"

namespace elastic::collectives {

/// The ranks that `rank` gives the result to, or takes it from.
std::vector<int> peers_in(const Backend::HandoverPairs& pairs, int rank);

/// Backend::hand_over on a mesh whose operation has begun. A holder serves all its takers at once.
Status hand_over_parcel(transport::Mesh& mesh, const Backend::HandoverPairs& pairs,
                        Backend::Parcel& parcel);

}  // namespace elastic::collectives
