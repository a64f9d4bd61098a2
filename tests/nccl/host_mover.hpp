#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/backend/nccl/memory/bucket_mover.hpp"

namespace elastic::collectives::nccl {

/// Casts to and from wire dtypes on the processor, instead of by kernels on a device: the stand-in
/// for the driver runs none.
class HostMover final : public BucketMover {
 public:
  explicit HostMover(device::CudaDevice& device) : device_(device), copies_(device) {}

  bool takes(std::span<const DeviceTensor>) const override { return true; }
  Status pack(std::span<const DeviceTensor> tensors, std::uint64_t bucket, void* stream) override;
  Status unpack(std::span<const DeviceTensor> tensors, std::uint64_t bucket, std::uint32_t divisor,
                void* stream) override;

 private:
  Status cast(const DeviceTensor& tensor, std::uint64_t bucket, void* stream) const;
  Status widen(const DeviceTensor& tensor, std::uint64_t bucket, std::uint32_t divisor,
               void* stream) const;
  Status read(std::vector<std::byte>& to, std::uint64_t from, void* stream) const;
  Status write(std::uint64_t to, const std::vector<std::byte>& from, void* stream) const;

  device::CudaDevice& device_;
  CopyMover copies_;
};

}  // namespace elastic::collectives::nccl
