#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "collectives/backend/nccl/collectives/device_work.hpp"

namespace elastic::collectives::nccl {

/// An allreduce of tensors: packs them into a bucket, and reduces the bucket in place by NCCL. A
/// single tensor out of place goes straight from its input to its output.
class DeviceAllreduce final : public DeviceWork {
 public:
  /// `tensors` must stay until the work is prepared.
  DeviceAllreduce(Where where, std::span<const DeviceTensor> tensors, ReduceOp op,
                  std::uint32_t divisor)
      : DeviceWork(std::move(where)), tensors_(tensors), op_(op), divisor_(divisor) {}

 private:
  Status allocate() override;
  Status pack(void* via) override;
  Status launch(TimePoint until, const Meanwhile& meanwhile) override;
  bool is_read_in_place() const;

  const std::span<const DeviceTensor> tensors_;
  const ReduceOp op_;
  const std::uint32_t divisor_;
};

}  // namespace elastic::collectives::nccl
