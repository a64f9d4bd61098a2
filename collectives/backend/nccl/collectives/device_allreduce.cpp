#include "collectives/backend/nccl/collectives/device_allreduce.hpp"

#include <vector>

#include "collectives/backend/nccl/collectives/nccl_group.hpp"
#include "collectives/backend/nccl/collectives/nccl_types.hpp"
#include "collectives/backend/nccl/memory/output_room.hpp"
#include "collectives/backend/nccl/nccl_api.hpp"

namespace elastic::collectives::nccl {

namespace {

/// Successive elements of one type in the bucket, for one call of NCCL. Padding between two tensors
/// is reduced with them.
struct Run {
  DType dtype = DType::kU8;
  std::size_t offset = 0;
  std::size_t count = 0;
};

std::vector<Run> runs_of(std::span<const DeviceTensor> tensors) {
  std::vector<Run> runs;
  for (const DeviceTensor& tensor : tensors) {
    const DType dtype = tensor.wire.dtype;
    if (runs.empty() || runs.back().dtype != dtype) runs.push_back({dtype, tensor.offset, 0});
    runs.back().count = (tensor.end() - runs.back().offset) / size_of(dtype);
  }
  return runs;
}

}  // namespace

/// NCCL uses registered memory only if that of all ranks is registered. So where the others have
/// theirs, this rank's result goes there, too.
Status DeviceAllreduce::allocate() {
  const DeviceTensor* const alone = tensors_.size() == 1 ? tensors_.data() : nullptr;
  const bool direct = alone != nullptr && !alone->is_cast() && !is_registered() &&
                      can_go_to_output(*alone, alone->bytes());
  if (!direct) return make_result(tensors_, divisor_);
  write_to_output(*alone, divisor_);
  return {};
}

/// NCCL reads a single tensor without a cast in place.
bool DeviceAllreduce::is_read_in_place() const {
  const auto& tensors = result().tensors();
  return tensors.size() == 1 && !tensors.front().is_cast();
}

/// With a cast to the wire dtype.
Status DeviceAllreduce::pack(void* via) {
  if (is_read_in_place()) return {};
  return device()->mover().pack(result().tensors(), result().address(), via);
}

/// Reduces each run of one type by ncclAllReduce, several runs in one group.
Status DeviceAllreduce::launch(TimePoint until, const Meanwhile& meanwhile) {
  const auto& tensors = result().tensors();
  const std::uint64_t bucket = result().address();
  const bool alone = is_read_in_place();
  const std::vector<Run> runs = runs_of(tensors);
  const auto reduce = [&](const Api& api, ncclComm* comm, const Run& run) {
    const std::uint64_t to = bucket + run.offset;
    const std::uint64_t from = alone ? tensors.front().input : to;
    return api.all_reduce(pointer_to(from), pointer_to(to), run.count, type_of(run.dtype),
                          op_of(run.dtype, op_), comm, static_cast<cudaStream_t>(stream()));
  };
  if (runs.size() == 1) {
    return communicator().perform(
        "ncclAllReduce",
        [&](const Api& api, ncclComm* comm) -> int { return reduce(api, comm, runs.front()); },
        until, meanwhile);
  }
  return communicator().perform(
      "ncclGroupEnd",
      [&](const Api& api, ncclComm* comm) -> int {
        return in_group(api, runs, [&](const Run& run) { return reduce(api, comm, run); });
      },
      until, meanwhile);
}

}  // namespace elastic::collectives::nccl
