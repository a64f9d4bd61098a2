#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/backend/device_tensors.hpp"
#include "collectives/backend/nccl/memory/shared_device.hpp"
#include "collectives/device/block_pool.hpp"

namespace elastic::collectives::nccl {

/// Bytes of a bucket with these tensors at their offsets.
std::size_t extent(std::span<const DeviceTensor> tensors);

/// A bucket on a device, in which the tensors of a collective lie at their offsets. It holds the
/// result once NCCL has written it. The output of a single tensor may itself be the bucket: then
/// the result needs no memory, and no copy.
class BucketResult : public DeviceResult {
 public:
  /// The memory of a bucket.
  struct Memory {
    device::BlockPool::Block registered = {};  ///< empty: some is borrowed from the device
    SharedDevice::Lack lack = SharedDevice::Lack::kMatters;
    std::size_t bytes = 0;  ///< if it is longer than the tensors at their offsets
  };
  /// The result is there when the work on the lane's stream is done. It is copied to the outputs
  /// over SharedDevice::way_back, so that the lane's next collective need not wait for that.
  static Result<std::shared_ptr<BucketResult>> make(std::shared_ptr<SharedDevice> device,
                                                    std::span<const DeviceTensor> tensors,
                                                    std::uint32_t divisor, Memory memory);

  /// The bucket is the output of `tensor`, the caller's memory (see can_go_to_output).
  /// `begin_unpack` has the device divide an average there.
  static std::shared_ptr<BucketResult> in_output(std::shared_ptr<SharedDevice> device,
                                                 DeviceTensor tensor, std::uint32_t divisor);

  Result<void*> begin_unpack() override;

  std::uint64_t address() const { return address_; }
  std::size_t bytes() const { return bytes_; }
  const std::vector<DeviceTensor>& tensors() const { return tensors_; }

 private:
  BucketResult(std::shared_ptr<SharedDevice> device, std::span<const DeviceTensor> tensors,
               std::uint32_t divisor, std::size_t bytes);

  const std::shared_ptr<SharedDevice> device_;
  const std::vector<DeviceTensor> tensors_;
  const std::uint32_t divisor_;  // 1 if the call is no average
  const std::size_t bytes_;
  device::BlockPool::Block memory_;  // empty if the bucket is the output
  std::uint64_t address_ = 0;
  bool is_output_ = false;
  bool is_registered_ = false;
};

}  // namespace elastic::collectives::nccl
