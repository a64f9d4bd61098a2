#include "collectives/backend/nccl/collectives/device_broadcast.hpp"

#include "collectives/backend/nccl/collectives/nccl_types.hpp"
#include "collectives/backend/nccl/nccl_api.hpp"

namespace elastic::collectives::nccl {

Status DeviceBroadcast::launch(TimePoint until, const Meanwhile& meanwhile) {
  return communicator().perform(
      "ncclBroadcast",
      [&](const Api& api, ncclComm* comm) -> int {
        // NCCL ignores the input on ranks other than the root.
        return api.broadcast(pointer_to(tensor_.input), pointer_to(result().address()),
                             tensor_.count, type_of(tensor_.dtype), root_, comm,
                             static_cast<cudaStream_t>(stream()));
      },
      until, meanwhile);
}

}  // namespace elastic::collectives::nccl
