#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "collectives/backend/backend.hpp"
#include "collectives/backend/nccl/collectives/device_work.hpp"

namespace elastic::collectives::nccl {

/// Whether NCCL can perform calls of this kind.
bool is_for_nccl(Kind kind);
/// Whether NCCL can perform the call on these tensors: it cannot reduce 16-bit integers, and has
/// the five simplest reductions only.
bool is_for_nccl(const Call& call, std::span<const DeviceTensor> tensors);
/// Whether it is a grouped_reduce_scatter or a grouped_allgather.
bool is_grouped_call(const Call& call);
/// The plural for messages, such as "allreduces".
const char* plural(const Call& call);

/// Makes this rank's part in a call for NCCL, on tensors on the device. `counts` has the number of
/// elements of each rank, for an allgather and a reduce_scatter; for a grouped allgather that of
/// each tensor, those of rank 0 first.
std::unique_ptr<DeviceWork> work_for(DeviceWork::Where where, const Call& call,
                                     std::span<const DeviceTensor> tensors,
                                     std::span<const std::uint64_t> counts, int rank, int size);

}  // namespace elastic::collectives::nccl
