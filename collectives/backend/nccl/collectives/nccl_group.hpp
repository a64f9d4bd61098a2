#pragma once

#include "collectives/backend/nccl/nccl_api.hpp"

namespace elastic::collectives::nccl {

/// Calls `queue` for each of `parts` in a group of NCCL, which begins all queued calls together.
/// The group belongs to the thread and is ended even after a failure: otherwise later calls of the
/// thread would join it.
template <typename Parts, typename Queue>
ncclResult_t in_group(const Api& api, const Parts& parts, const Queue& queue) {
  if (const ncclResult_t begun = api.group_start(); begun != ncclSuccess) return begun;
  ncclResult_t failure = ncclSuccess;
  for (const auto& part : parts) {
    const ncclResult_t queued = queue(part);
    if (queued == ncclSuccess || queued == ncclInProgress) continue;
    failure = queued;
    break;
  }
  const ncclResult_t ended = api.group_end();
  return failure == ncclSuccess ? ended : failure;
}

}  // namespace elastic::collectives::nccl
