#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "base/mutex.hpp"
#include "base/status.hpp"
#include "collectives/device/arrivals.hpp"
#include "collectives/device/cuda_device.hpp"
#include "collectives/device/placement.hpp"
#include "collectives/device/staged_tensors.hpp"
#include "collectives/device/stall_watch.hpp"
#include "elastic/types.hpp"

namespace elastic::device {

/// The CUDA devices of this process, as far as tensors on them are given. Until one is, the driver
/// is not even looked for.
///
/// Any thread.
class Devices {
 public:
  /// `driver`: its file, as for CudaDriver::find. `watch` hears of all waits for devices.
  explicit Devices(std::string driver = "",
                   std::shared_ptr<StallWatch> watch = std::make_shared<StallWatch>());

  /// kInvalidArgument where a tensor that was given as one in host memory lies on a device. Only
  /// where the program used CUDA before this was made, or has given a tensor on a device; otherwise
  /// there is no driver to ask.
  Status check_host(const ConstTensorView& tensor) const {
    return ask_.load(std::memory_order_acquire) == nullptr ? Status() : look_up(tensor);
  }

  /// Makes the way through host memory for the tensors of a call, which is named `call` in
  /// messages: see StagedTensors::begin. At least one of them lies on a device. kInvalidArgument,
  /// with what to do, where a tensor is not where it was said to be, where not all that lie on a
  /// device lie on the same, or where the stream cannot be waited for; kUnavailable where CUDA is
  /// missing or fails.
  Result<std::shared_ptr<StagedTensors>> stage(const std::string& call,
                                               std::span<const ConstTensorView> inputs,
                                               std::span<const TensorView> outputs,
                                               CudaStream stream, Fetch when = Fetch::kAtOnce);

  /// The device on which all of `tensors` lie, for a call that works on it itself. There is at
  /// least one. Fails as `stage`.
  Result<std::shared_ptr<CudaDevice>> device_of(const std::string& call,
                                                std::span<const TensorView> tensors,
                                                CudaStream stream);

 private:
  Result<std::shared_ptr<CudaDevice>> open(int index);
  Status look_up(const ConstTensorView& tensor) const;
  Status check(const CudaDevice& device, const ConstTensorView& tensor) const;
  Status check(const CudaDevice& device, const std::string& call,
               std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs) const;

  const std::string driver_;
  const std::shared_ptr<StallWatch> watch_;
  std::atomic<decltype(CudaApi::pointer_get_attributes)> ask_{nullptr};
  std::atomic<const CudaDevice*> any_{nullptr};  // one of those opened: questions need a context
  Mutex mutex_;
  std::shared_ptr<const Cuda> cuda_ ELASTIC_GUARDED_BY(mutex_);
  std::map<int, std::shared_ptr<CudaDevice>> opened_ ELASTIC_GUARDED_BY(mutex_);
  Arrivals arrivals_;
};

}  // namespace elastic::device
