#include "collectives/backend/nccl/device_allreduce.hpp"

#include <vector>

#include "collectives/backend/nccl/nccl_api.hpp"
#include "collectives/backend/nccl/nccl_types.hpp"

namespace elastic::collectives::nccl {

namespace {

/// Elements of one type that follow each other in the bucket; what lies between two tensors is
/// reduced with them.
struct Run {
  DType dtype = DType::kU8;
  std::size_t offset = 0;
  std::size_t count = 0;
};

std::vector<Run> runs_of(std::span<const DeviceTensor> tensors) {
  std::vector<Run> runs;
  for (const DeviceTensor& tensor : tensors) {
    if (runs.empty() || runs.back().dtype != tensor.dtype) {
      runs.push_back({tensor.dtype, tensor.offset, 0});
    }
    const std::size_t end = tensor.offset + tensor.bytes();
    runs.back().count = (end - runs.back().offset) / size_of(tensor.dtype);
  }
  return runs;
}

}  // namespace

/// A tensor by itself is read where it lies; several are packed first.
Status DeviceAllreduce::launch(TimePoint until, const Meanwhile& meanwhile) {
  const auto& tensors = result().tensors();
  const std::uint64_t bucket = result().address();
  const bool alone = tensors.size() == 1;
  if (!alone) {
    if (Status packed = device()->mover().pack(tensors, bucket, stream()); !packed.ok()) {
      return packed;
    }
  }
  for (const Run& run : runs_of(tensors)) {
    const std::uint64_t to = bucket + run.offset;
    const std::uint64_t from = alone ? tensors.front().input : to;
    Status begun = communicator().perform(
        "ncclAllReduce",
        [&](const Api& api, ncclComm* comm) -> int {
          return api.all_reduce(pointer_to(from), pointer_to(to), run.count, type_of(run.dtype),
                                op_of(op_), comm, static_cast<cudaStream_t>(stream()));
        },
        until, meanwhile);
    if (!begun.ok()) return begun;
  }
  return {};
}

}  // namespace elastic::collectives::nccl
