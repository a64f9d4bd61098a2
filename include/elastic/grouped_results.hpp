#pragma once

#include <vector>

#include "elastic/results.hpp"

namespace elastic {

/// The result of a grouped_reduce_scatter: this worker's part of each tensor, in the order of the
/// tensors. All parts were computed from the same contributions.
struct ScatteredTensors {
  std::vector<ScatteredPart> tensors;  ///< each with the contributors below
  Contributors contributors;           ///< the workers with a contribution to every part
};

/// The result of a grouped_allgather: the blocks of each tensor, in the order of the tensors. All
/// of them are from the same workers.
struct GatheredTensors {
  std::vector<GatheredBlocks> tensors;  ///< each with the contributors below
  Contributors contributors;            ///< the workers with a block of every tensor
};

}  // namespace elastic
