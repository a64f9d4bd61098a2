#pragma once

#include "collectives/backend/nccl/nccl_library.hpp"
#include "collectives/device/block_pool.hpp"
#include "elastic/options.hpp"

namespace elastic::collectives::nccl {

/// NCCL's allocator of memory that it can register, on the current device. Multicast objects of
/// NVLink need memory that NCCL has allocated. Both functions are empty if the library
/// (before 2.19) cannot register memory.
struct NcclMemory {
  device::BlockPool::Get get = {};
  device::BlockPool::GiveBack give_back = {};
};

/// Whether memory is to be registered with NCCL of `version`. With registered buffers and NVLink
/// SHARP each collective begins with an exchange among the ranks of a host (ncclShmemAllgather of
/// src/transport/nvls.cc), whose wait does not look at the abort flag from 2.28.3 on
/// (src/misc/shmutils.cc): a death would hold the survivors up until the proxy's own time is over.
bool registers_memory(NcclRegister wanted, int version);

/// The result does not keep `library` alive: the library stays loaded.
NcclMemory memory_of(const NcclLibrary& library);

}  // namespace elastic::collectives::nccl
