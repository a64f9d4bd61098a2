#pragma once

#include "collectives/backend/nccl/nccl_library.hpp"
#include "collectives/device/pinned_pool.hpp"

namespace elastic::collectives::nccl {

/// Where memory comes from that NCCL can register: what multicast objects of NVLink are made of has
/// to be allocated in NCCL's way. Of the current device; both are empty where the library (before
/// 2.19) registers none.
struct NcclMemory {
  device::PinnedPool::Get get = {};
  device::PinnedPool::GiveBack give_back = {};
};

/// Holds nothing of `library`, which stays loaded.
NcclMemory memory_of(const NcclLibrary& library);

}  // namespace elastic::collectives::nccl
