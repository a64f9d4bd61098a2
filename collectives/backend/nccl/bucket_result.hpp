#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/backend/device_tensors.hpp"
#include "collectives/backend/nccl/shared_device.hpp"
#include "collectives/device/pinned_pool.hpp"

namespace elastic::collectives::nccl {

/// How much memory tensors take that lie at their offsets.
std::size_t extent(std::span<const DeviceTensor> tensors);

/// Memory on a device in which the tensors of an allreduce lie at their offsets; once they are
/// reduced, the result.
class BucketResult : public DeviceResult {
 public:
  /// `stream` is the device's for the lane, behind whose work the result is. `memory`: of the
  /// device; where it is empty, some is lent.
  static Result<std::shared_ptr<BucketResult>> make(std::shared_ptr<SharedDevice> device,
                                                    void* stream,
                                                    std::span<const DeviceTensor> tensors,
                                                    std::uint32_t divisor,
                                                    device::PinnedPool::Block memory = {});

  Status unpack() override;
  Status gather(Buffer& data) override;

  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(memory_.data()); }
  std::size_t bytes() const { return bytes_; }
  const std::vector<DeviceTensor>& tensors() const { return tensors_; }

 private:
  BucketResult(std::shared_ptr<SharedDevice> device, void* stream,
               std::span<const DeviceTensor> tensors, std::uint32_t divisor);

  const std::shared_ptr<SharedDevice> device_;
  void* const stream_;
  const std::vector<DeviceTensor> tensors_;
  const std::uint32_t divisor_;  // of an average; otherwise 1
  const std::size_t bytes_;
  device::PinnedPool::Block memory_;
};

}  // namespace elastic::collectives::nccl
