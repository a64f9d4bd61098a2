#pragma once

#include <memory>

#include "collectives/backend/backend.hpp"
#include "collectives/backend/nccl/device_work.hpp"

namespace elastic::collectives::nccl {

/// Whether NCCL performs such calls.
bool is_for_nccl(Kind kind);
/// And of such tensors: it has no integers of 16 bits to reduce.
bool is_for_nccl(Kind kind, std::span<const DeviceTensor> tensors);
/// "allreduces", for messages.
const char* plural(Kind kind);

/// This rank's part in a call for NCCL, of the tensors that `payload` says lie on a device. How
/// many elements each rank has is in Payload::counts: for a reduce_scatter it is put there, for an
/// allgather it is there already.
std::unique_ptr<DeviceWork> work_for(DeviceWork::Where where, const Call& call, Payload& payload,
                                     int rank, int size);

}  // namespace elastic::collectives::nccl
