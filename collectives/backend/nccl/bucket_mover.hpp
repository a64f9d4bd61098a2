#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/status.hpp"
#include "collectives/backend/device_tensors.hpp"
#include "collectives/device/cuda_device.hpp"

namespace elastic::collectives::nccl {

/// An address on a device, as NCCL and the runtime of CUDA take it.
inline void* pointer_to(std::uint64_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver has numbers
  return reinterpret_cast<void*>(address);
}

/// Moves tensors between where the program has them and a bucket on the same device, in which they
/// lie at their offsets as their wires say. What it queues on `stream` comes after what is queued
/// there; within CudaDevice::enter.
class BucketMover {
 public:
  virtual ~BucketMover() = default;
  /// Whether it can. What it takes once it takes always.
  virtual bool takes(std::span<const DeviceTensor> tensors) const = 0;
  /// The inputs to the bucket.
  virtual Status pack(std::span<const DeviceTensor> tensors, std::uint64_t bucket,
                      void* stream) = 0;
  /// The bucket to the outputs, divided. May wait for the stream.
  virtual Status unpack(std::span<const DeviceTensor> tensors, std::uint64_t bucket,
                        std::uint32_t divisor, void* stream) = 0;
};

/// By the driver alone: a copy for each tensor. What is divided goes through host memory; takes
/// none that are narrowed, which would, too: there other ways are as good.
class CopyMover : public BucketMover {
 public:
  explicit CopyMover(device::CudaDevice& device) : device_(device) {}
  bool takes(std::span<const DeviceTensor> tensors) const override;
  Status pack(std::span<const DeviceTensor> tensors, std::uint64_t bucket, void* stream) override;
  Status unpack(std::span<const DeviceTensor> tensors, std::uint64_t bucket, std::uint32_t divisor,
                void* stream) override;

 private:
  Status unpack_divided(const DeviceTensor& tensor, std::uint64_t from, std::uint32_t divisor,
                        void* stream);

  device::CudaDevice& device_;
};

/// By kernels of ours, where this build has them and they can be used on the device; otherwise by
/// copies. `device` outlives it.
std::unique_ptr<BucketMover> make_mover(device::CudaDevice& device);
using MakeMover = std::function<std::unique_ptr<BucketMover>(device::CudaDevice& device)>;

}  // namespace elastic::collectives::nccl
