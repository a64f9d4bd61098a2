#pragma once

#include <memory>

#include "collectives/backend/backend.hpp"
#include "collectives/backend/nccl/device_work.hpp"

namespace elastic::collectives::nccl {

/// Whether NCCL can perform calls of this kind.
bool is_for_nccl(Kind kind);
/// Whether NCCL can perform them on these tensors: it cannot reduce 16-bit integers.
bool is_for_nccl(Kind kind, std::span<const DeviceTensor> tensors);
/// The plural for messages, such as "allreduces".
const char* plural(Kind kind);

/// Makes this rank's part in a call for NCCL, on the tensors of Payload::on_device. Payload::counts
/// has the number of elements of each rank: the caller sets it for an allgather, this function for
/// a reduce_scatter.
std::unique_ptr<DeviceWork> work_for(DeviceWork::Where where, const Call& call, Payload& payload,
                                     int rank, int size);

}  // namespace elastic::collectives::nccl
