#include <algorithm>

#include "collectives/backend/nccl/memory/bucket_mover.hpp"
#include "collectives/kernels/reduce.hpp"

namespace elastic::collectives::nccl {

bool CopyMover::takes(std::span<const DeviceTensor> tensors) const {
  return std::ranges::none_of(tensors, &DeviceTensor::is_cast);
}

Status CopyMover::pack(std::span<const DeviceTensor> tensors, std::uint64_t bucket, void* stream) {
  const auto& api = device_.cuda().api();
  for (const DeviceTensor& tensor : tensors) {
    Status status = device_.outcome(
        "cuMemcpyDtoDAsync",
        api.copy_on_device(bucket + tensor.offset, tensor.input, tensor.bytes(), stream));
    if (!status.ok()) return status;
  }
  return {};
}

Status CopyMover::unpack(std::span<const DeviceTensor> tensors, std::uint64_t bucket,
                         std::uint32_t divisor, void* stream) {
  const auto& api = device_.cuda().api();
  for (const DeviceTensor& tensor : tensors) {
    const std::uint64_t from = bucket + tensor.offset;
    Status status =
        divisor == 1
            ? device_.outcome("cuMemcpyDtoDAsync",
                              api.copy_on_device(tensor.output, from, tensor.bytes(), stream))
            : unpack_divided(tensor, from, divisor, stream);
    if (!status.ok()) return status;
  }
  return {};
}

Status CopyMover::unpack_divided(const DeviceTensor& tensor, std::uint64_t from,
                                 std::uint32_t divisor, void* stream) {
  const auto& api = device_.cuda().api();
  auto lent = device_.pinned().lend(tensor.bytes());
  if (!lent.ok()) return lent.status();
  std::byte* const host = lent.value().data();
  Status status =
      device_.outcome("cuMemcpyDtoHAsync", api.copy_to_host(host, from, tensor.bytes(), stream));
  // Waits even after a failure, because the memory is lent again afterwards.
  Status done = device_.outcome("cuStreamSynchronize", api.stream_synchronize(stream));
  if (!status.ok() || !done.ok()) return status.ok() ? done : status;
  kernels::divide(tensor.dtype, host, tensor.count, divisor);
  status = device_.outcome("cuMemcpyHtoDAsync",
                           api.copy_to_device(tensor.output, host, tensor.bytes(), stream));
  done = device_.outcome("cuStreamSynchronize", api.stream_synchronize(stream));
  return status.ok() ? done : status;
}

}  // namespace elastic::collectives::nccl
