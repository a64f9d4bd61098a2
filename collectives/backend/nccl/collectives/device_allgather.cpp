#include "collectives/backend/nccl/collectives/device_allgather.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "collectives/backend/nccl/collectives/nccl_group.hpp"
#include "collectives/backend/nccl/collectives/nccl_types.hpp"
#include "collectives/backend/nccl/memory/output_room.hpp"
#include "collectives/backend/nccl/nccl_api.hpp"

namespace elastic::collectives::nccl {

Status DeviceAllgather::allocate() {
  DeviceTensor all = block_;
  all.count = std::accumulate(counts_.begin(), counts_.end(), std::size_t{0});
  if (!can_go_to_output(block_, all.bytes())) return make_result({&all, 1}, 1);
  write_to_output(all, 1);
  return {};
}

Status DeviceAllgather::launch(TimePoint until, const Meanwhile& meanwhile) {
  const bool equal =
      std::adjacent_find(counts_.begin(), counts_.end(), std::not_equal_to<>()) == counts_.end();
  if (!equal || counts_.front() == 0) return broadcast_each(until, meanwhile);
  return communicator().perform(
      "ncclAllGather",
      [&](const Api& api, ncclComm* comm) -> int {
        return api.all_gather(pointer_to(block_.input), pointer_to(result().address()),
                              block_.count, type_of(block_.dtype), comm,
                              static_cast<cudaStream_t>(stream()));
      },
      until, meanwhile);
}

Status DeviceAllgather::broadcast_each(TimePoint until, const Meanwhile& meanwhile) {
  struct Block {
    int root = 0;
    std::uint64_t to = 0;
    std::size_t count = 0;
  };
  std::vector<Block> blocks;
  std::uint64_t to = result().address();
  for (std::size_t root = 0; root < counts_.size(); ++root) {
    if (counts_[root] > 0) blocks.push_back({static_cast<int>(root), to, counts_[root]});
    to += counts_[root] * size_of(block_.dtype);
  }
  if (blocks.empty()) return {};
  return communicator().perform(
      "ncclGroupEnd",
      [&](const Api& api, ncclComm* comm) -> int {
        return in_group(api, blocks, [&](const Block& block) {
          return api.broadcast(pointer_to(block_.input), pointer_to(block.to), block.count,
                               type_of(block_.dtype), block.root, comm,
                               static_cast<cudaStream_t>(stream()));
        });
      },
      until, meanwhile);
}

}  // namespace elastic::collectives::nccl
