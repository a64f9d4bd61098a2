#pragma once

#include <cstddef>
#include <nccl.h>

namespace elastic::collectives::nccl {

/// The functions of the loaded libnccl. Functions of every supported version have the types of
/// NCCL's header. The others are null if the loaded version lacks them, and are declared here, so
/// that older headers suffice.
struct Api {
  decltype(&::ncclGetVersion) get_version = nullptr;
  decltype(&::ncclGetErrorString) get_error_string = nullptr;
  decltype(&::ncclGetLastError) get_last_error = nullptr;
  decltype(&::ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&::ncclCommInitRankConfig) comm_init_rank_config = nullptr;
  decltype(&::ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&::ncclCommDestroy) comm_destroy = nullptr;
  decltype(&::ncclCommAbort) comm_abort = nullptr;
  decltype(&::ncclAllReduce) all_reduce = nullptr;
  decltype(&::ncclGroupStart) group_start = nullptr;
  decltype(&::ncclGroupEnd) group_end = nullptr;
  decltype(&::ncclBroadcast) broadcast = nullptr;
  decltype(&::ncclAllGather) all_gather = nullptr;
  decltype(&::ncclReduceScatter) reduce_scatter = nullptr;

  /// Since 2.19: memory that can be registered with communicators.
  ncclResult_t (*memory_alloc)(void** memory, std::size_t bytes) = nullptr;
  ncclResult_t (*memory_free)(void* memory) = nullptr;
  ncclResult_t (*comm_register)(ncclComm_t comm, void* memory, std::size_t bytes,
                                void** handle) = nullptr;
  /// Since 2.27: makes a communicator of the remaining ranks.
  ncclResult_t (*comm_shrink)(ncclComm_t parent, int* excluded, int excluded_count,
                              ncclComm_t* made, ncclConfig_t* config, int flags) = nullptr;
  /// Since 2.28: ends the calls under way, and keeps the communicator.
  ncclResult_t (*comm_revoke)(ncclComm_t comm, int flags) = nullptr;
  /// Since 2.29: makes a communicator with more ranks.
  ncclResult_t (*comm_grow)(ncclComm_t parent, int ranks, const ncclUniqueId* id, int rank,
                            ncclComm_t* made, ncclConfig_t* config) = nullptr;
};

}  // namespace elastic::collectives::nccl
