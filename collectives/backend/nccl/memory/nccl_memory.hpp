#pragma once

#include "collectives/backend/nccl/nccl_library.hpp"
#include "collectives/device/block_pool.hpp"

namespace elastic::collectives::nccl {

/// NCCL's allocator of memory that it can register, on the current device. Multicast objects of
/// NVLink need memory that NCCL has allocated. Both functions are empty if the library
/// (before 2.19) cannot register memory.
struct NcclMemory {
  device::BlockPool::Get get = {};
  device::BlockPool::GiveBack give_back = {};
};

/// The result does not keep `library` alive: the library stays loaded.
NcclMemory memory_of(const NcclLibrary& library);

}  // namespace elastic::collectives::nccl
