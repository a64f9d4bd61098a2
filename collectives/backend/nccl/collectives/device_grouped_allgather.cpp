#include "collectives/backend/nccl/collectives/device_grouped_allgather.hpp"

#include <algorithm>
#include <functional>

#include "collectives/backend/nccl/collectives/nccl_group.hpp"
#include "collectives/backend/nccl/collectives/nccl_types.hpp"
#include "collectives/backend/nccl/nccl_api.hpp"
#include "collectives/plan/group_block.hpp"

namespace elastic::collectives::nccl {

DeviceGroupedAllgather::DeviceGroupedAllgather(Where where, std::span<const DeviceTensor> tensors,
                                               std::span<const std::uint64_t> counts, int rank)
    : DeviceWork(std::move(where)), rank_(static_cast<std::size_t>(rank)) {
  lay_out(tensors, counts);
}

void DeviceGroupedAllgather::lay_out(std::span<const DeviceTensor> tensors,
                                     std::span<const std::uint64_t> counts) {
  std::vector<std::uint64_t> outputs;  // where the next block of each tensor goes
  for (const DeviceTensor& tensor : tensors) outputs.push_back(tensor.output);
  std::size_t at = 0;
  for (std::size_t rank = 0; rank < counts.size() / tensors.size(); ++rank) {
    const auto theirs = counts.subspan(rank * tensors.size(), tensors.size());
    std::vector<std::size_t> bytes;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      bytes.push_back(static_cast<std::size_t>(theirs[i]) * size_of(tensors[i].dtype));
    }
    const plan::GroupBlock layout(bytes);
    RankBlock block{at, layout.bytes(), {}};
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      DeviceTensor tensor = tensors[i];
      tensor.count = static_cast<std::size_t>(theirs[i]);
      tensor.output = outputs[i];
      tensor.offset = at + layout.place(i);
      outputs[i] += bytes[i];
      if (tensor.count > 0) block.tensors.push_back(tensor);
    }
    at += block.bytes;
    blocks_.push_back(std::move(block));
  }
}

Status DeviceGroupedAllgather::allocate() {
  std::vector<DeviceTensor> all;
  for (const RankBlock& block : blocks_) {
    all.insert(all.end(), block.tensors.begin(), block.tensors.end());
  }
  return make_result(all, 1, blocks_.back().offset + blocks_.back().bytes);
}

Status DeviceGroupedAllgather::pack(void* via) {
  const RankBlock& own = blocks_[rank_];
  if (own.tensors.empty()) return {};
  return device()->mover().pack(own.tensors, result().address(), via);
}

/// Blocks of equal size take one ncclAllGather, others one broadcast each, in one group.
Status DeviceGroupedAllgather::launch(TimePoint until, const Meanwhile& meanwhile) {
  const auto at = [&](const RankBlock& block) {
    return pointer_to(result().address() + block.offset);
  };
  const bool equal = std::ranges::adjacent_find(blocks_, std::not_equal_to<>(),
                                                &RankBlock::bytes) == blocks_.end();
  if (equal) {
    const RankBlock& own = blocks_[rank_];
    return communicator().perform(
        "ncclAllGather",
        [&](const Api& api, ncclComm* comm) -> int {
          return api.all_gather(at(own), at(blocks_.front()), own.bytes, type_of(DType::kU8), comm,
                                static_cast<cudaStream_t>(stream()));
        },
        until, meanwhile);
  }
  return communicator().perform(
      "ncclGroupEnd",
      [&](const Api& api, ncclComm* comm) -> int {
        return in_group(api, blocks_, [&](const RankBlock& block) {
          return api.broadcast(at(block), at(block), block.bytes, type_of(DType::kU8),
                               static_cast<int>(&block - blocks_.data()), comm,
                               static_cast<cudaStream_t>(stream()));
        });
      },
      until, meanwhile);
}

}  // namespace elastic::collectives::nccl
