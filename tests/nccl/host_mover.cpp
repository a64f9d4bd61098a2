#include "nccl/host_mover.hpp"

#include "collectives/kernels/cast.hpp"

namespace elastic::collectives::nccl {

Status HostMover::pack(std::span<const DeviceTensor> tensors, std::uint64_t bucket, void* stream) {
  for (const DeviceTensor& tensor : tensors) {
    Status status = tensor.is_cast() ? cast(tensor, bucket, stream)
                                     : copies_.pack({&tensor, 1}, bucket, stream);
    if (!status.ok()) return status;
  }
  return {};
}

Status HostMover::unpack(std::span<const DeviceTensor> tensors, std::uint64_t bucket,
                         std::uint32_t divisor, void* stream) {
  for (const DeviceTensor& tensor : tensors) {
    Status status = tensor.is_cast() ? widen(tensor, bucket, divisor, stream)
                                     : copies_.unpack({&tensor, 1}, bucket, divisor, stream);
    if (!status.ok()) return status;
  }
  return {};
}

Status HostMover::cast(const DeviceTensor& tensor, std::uint64_t bucket, void* stream) const {
  std::vector<std::byte> wide(tensor.bytes());
  if (Status status = read(wide, tensor.input, stream); !status.ok()) return status;
  std::vector<std::byte> halves(tensor.bytes_of_wire());
  kernels::cast(tensor.dtype, wide.data(), tensor.count, double{tensor.wire.scale},
                tensor.wire.dtype, halves.data());
  return write(bucket + tensor.offset, halves, stream);
}

Status HostMover::widen(const DeviceTensor& tensor, std::uint64_t bucket, std::uint32_t divisor,
                        void* stream) const {
  std::vector<std::byte> halves(tensor.bytes_of_wire());
  if (Status status = read(halves, bucket + tensor.offset, stream); !status.ok()) return status;
  std::vector<std::byte> wide(tensor.bytes());
  kernels::widen(tensor.wire.dtype, halves.data(), tensor.count, 1 / double{tensor.wire.scale},
                 divisor, tensor.dtype, wide.data());
  return write(tensor.output, wide, stream);
}

Status HostMover::read(std::vector<std::byte>& to, std::uint64_t from, void* stream) const {
  const auto& api = device_.cuda().api();
  Status status =
      device_.outcome("cuMemcpyDtoHAsync", api.copy_to_host(to.data(), from, to.size(), stream));
  Status done = device_.outcome("cuStreamSynchronize", api.stream_synchronize(stream));
  return status.ok() ? done : status;
}

Status HostMover::write(std::uint64_t to, const std::vector<std::byte>& from, void* stream) const {
  const auto& api = device_.cuda().api();
  Status status = device_.outcome("cuMemcpyHtoDAsync",
                                  api.copy_to_device(to, from.data(), from.size(), stream));
  Status done = device_.outcome("cuStreamSynchronize", api.stream_synchronize(stream));
  return status.ok() ? done : status;
}

}  // namespace elastic::collectives::nccl
