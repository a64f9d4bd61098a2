#pragma once

#include <cstdint>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/module.hpp"
#include "collectives/backend/nccl/lane_operation.hpp"

namespace elastic::collectives::nccl {

/// For an allgather: exchanges how many elements each rank gives, as a phase of the operation.
/// \returns the counts of all ranks, those of rank 0 first; in a grouped allgather each rank has one
/// for each tensor. kInvalidArgument, the same on all ranks: see gathered_bytes.
Result<std::vector<std::uint64_t>> share_counts(const ModuleView& view, LaneOperation& operation);

}  // namespace elastic::collectives::nccl
