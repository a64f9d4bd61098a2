#include "collectives/backend/nccl/collectives/device_reduce_scatter.hpp"

#include <algorithm>

#include "collectives/backend/nccl/collectives/nccl_types.hpp"
#include "collectives/backend/nccl/memory/output_room.hpp"
#include "collectives/backend/nccl/nccl_api.hpp"

namespace elastic::collectives::nccl {

Status DeviceReduceScatter::allocate() {
  largest_ = *std::max_element(counts_.begin(), counts_.end());
  DeviceTensor part = data_;
  part.count = counts_[rank_];
  // With less room than the largest part takes, the call ends in an error on all such ranks, which
  // leaves the output as it was.
  if (can_go_to_output(data_, largest_ * size_of(data_.dtype))) {
    write_to_output(part, divisor_);
  } else if (Status made = make_result({&part, 1}, divisor_); !made.ok()) {
    return made;
  }
  if (equal()) return {};
  auto lent = device()->lend(offset(counts_.size()));
  if (!lent.ok()) return lent.status();
  slots_ = std::move(lent).value();
  return {};
}

Status DeviceReduceScatter::launch(TimePoint until, const Meanwhile& meanwhile) {
  if (equal()) return perform(data_.input, result().address(), until, meanwhile);
  const std::uint64_t from = reinterpret_cast<std::uintptr_t>(slots_.data());
  const std::uint64_t part = from + offset(rank_);
  if (Status begun = perform(from, part, until, meanwhile); !begun.ok()) return begun;
  if (result().bytes() == 0) return {};
  const device::CudaDevice& cuda = *device()->cuda();
  return cuda.outcome(
      "cuMemcpyDtoDAsync",
      cuda.cuda().api().copy_on_device(result().address(), part, result().bytes(), stream()));
}

/// Copies each part to its slot. NCCL also reduces the rest of a slot, which is garbage.
Status DeviceReduceScatter::pack(void* via) {
  if (equal()) return {};
  std::vector<DeviceTensor> parts;
  std::uint64_t at = data_.input;
  for (std::size_t rank = 0; rank < counts_.size(); ++rank) {
    DeviceTensor part{data_.dtype, static_cast<std::size_t>(counts_[rank]), at, 0, offset(rank)};
    if (part.count > 0) parts.push_back(part);
    at += part.bytes();
  }
  return device()->mover().pack(parts, reinterpret_cast<std::uintptr_t>(slots_.data()), via);
}

Status DeviceReduceScatter::perform(std::uint64_t from, std::uint64_t to, TimePoint until,
                                    const Meanwhile& meanwhile) {
  return communicator().perform(
      "ncclReduceScatter",
      [&](const Api& api, ncclComm* comm) -> int {
        return api.reduce_scatter(pointer_to(from), pointer_to(to), largest_, type_of(data_.dtype),
                                  op_of(data_.dtype, op_), comm,
                                  static_cast<cudaStream_t>(stream()));
      },
      until, meanwhile);
}

}  // namespace elastic::collectives::nccl
