#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/status.hpp"
#include "collectives/backend/device_tensors.hpp"
#include "collectives/device/cuda_device.hpp"

namespace elastic::collectives::nccl {

/// A device address as the pointer that NCCL and CUDA's runtime take.
inline void* pointer_to(std::uint64_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver has numbers
  return reinterpret_cast<void*>(address);
}

/// Moves tensors between the program's memory and a bucket on the same device. In the bucket they
/// lie at their offsets, in their wire dtypes. The moves are queued on `stream`, behind the work
/// that is already there. To be called within CudaDevice::enter.
class BucketMover {
 public:
  virtual ~BucketMover() = default;
  /// Whether it can move these tensors. The answer for the same tensors never changes.
  virtual bool takes(std::span<const DeviceTensor> tensors) const = 0;
  /// Copies the inputs to the bucket.
  virtual Status pack(std::span<const DeviceTensor> tensors, std::uint64_t bucket,
                      void* stream) = 0;
  /// Copies the bucket to the outputs, and divides averages by `divisor`. May wait for the stream.
  /// An output may be exactly where its elements are in the bucket.
  virtual Status unpack(std::span<const DeviceTensor> tensors, std::uint64_t bucket,
                        std::uint32_t divisor, void* stream) = 0;
};

/// Moves tensors by the driver alone, with one copy for each. Averages go through host memory,
/// which divides them. It takes no tensors that are cast to a wire dtype: the host path is as good.
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

/// \returns a mover with this library's kernels, if the build has them and the device can run them;
/// otherwise a CopyMover. `device` must outlive it.
std::unique_ptr<BucketMover> make_mover(device::CudaDevice& device);
using MakeMover = std::function<std::unique_ptr<BucketMover>(device::CudaDevice& device)>;

}  // namespace elastic::collectives::nccl
