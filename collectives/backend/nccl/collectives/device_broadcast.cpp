#include "collectives/backend/nccl/collectives/device_broadcast.hpp"

#include "collectives/backend/nccl/collectives/nccl_types.hpp"
#include "collectives/backend/nccl/nccl_api.hpp"

namespace elastic::collectives::nccl {

Status DeviceBroadcast::launch(TimePoint until, const Meanwhile& meanwhile) {
  return communicator().perform(
      "ncclBroadcast",
      [&](const Api& api, ncclComm* comm) -> int {
        // NCCL ignores the input on ranks other than the root, and writes nothing on the root if
        // the output is the input.
        const std::uint64_t to = is_root_ ? tensor_.input : result().address();
        return api.broadcast(pointer_to(tensor_.input), pointer_to(to), tensor_.count,
                             type_of(tensor_.dtype), root_, comm,
                             static_cast<cudaStream_t>(stream()));
      },
      until, meanwhile);
}

}  // namespace elastic::collectives::nccl
