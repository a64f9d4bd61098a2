#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "collectives/backend/device_tensors.hpp"
#include "collectives/backend/nccl/bucket_result.hpp"
#include "collectives/backend/nccl/communicator.hpp"
#include "collectives/backend/nccl/shared_device.hpp"

namespace elastic::collectives::nccl {

/// This rank's part in an allreduce by NCCL, whose result stays in a bucket. The inputs are only
/// read. Of the thread that has the turn on the device.
class DeviceAllreduce {
 public:
  DeviceAllreduce(Communicator& communicator, std::shared_ptr<SharedDevice> device,
                  std::size_t lane)
      : communicator_(communicator), device_(std::move(device)), lane_(lane) {}

  /// Waits, asking `meanwhile` all the time, until NCCL is done here; at most `most`, and as long
  /// again for each GiB. Where it fails, `meanwhile` or NCCL or CUDA, memory is in use until the
  /// communicator has ended and `wait_for_copies` has returned: the inputs, and what this owns.
  Status run(std::span<const DeviceTensor> tensors, ReduceOp op, std::uint32_t divisor,
             Duration most, const std::function<Status()>& meanwhile);

  /// After a failure, when the communicator has ended: until nothing of ours reads the inputs.
  void wait_for_copies() const;

  std::shared_ptr<DeviceResult> take_result() { return std::move(result_); }

 private:
  Status launch(ReduceOp op, TimePoint until, const std::function<Status()>& meanwhile);
  Status wait(TimePoint until, const std::function<Status()>& meanwhile);

  Communicator& communicator_;
  const std::shared_ptr<SharedDevice> device_;
  const std::size_t lane_;
  void* stream_ = nullptr;
  std::shared_ptr<BucketResult> result_;
};

}  // namespace elastic::collectives::nccl
