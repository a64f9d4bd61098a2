#include "collectives/device/devices.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/cuda_driver.hpp"

namespace elastic::device {

namespace {

/// The device of all tensors that lie on one: they go over its stream. At least one does.
Result<int> common_device(std::span<const ConstTensorView> inputs,
                          std::span<const TensorView> outputs) {
  std::optional<int> common;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (const ConstTensorView& tensor : {inputs[i], ConstTensorView(outputs[i])}) {
      if (!on_device(tensor)) continue;
      if (!common) common = tensor.device.index;
      if (*common == tensor.device.index) continue;
      return Status(Code::kInvalidArgument,
                    "one call has tensors on CUDA device " + std::to_string(*common) +
                        " and on CUDA device " + std::to_string(tensor.device.index) +
                        ": give all on the same, or make a call for each device");
    }
  }
  return common.value_or(0);
}

bool are_the_same(const ConstTensorView& one, const ConstTensorView& other) {
  return one.data == other.data && one.bytes() == other.bytes() &&
         on_device(one) == on_device(other);
}

const void* last_byte(const ConstTensorView& tensor) {
  return static_cast<const std::byte*>(tensor.data) + tensor.bytes() - 1;
}

}  // namespace

Devices::Devices(std::string driver, std::shared_ptr<StallWatch> watch)
    : driver_(std::move(driver)), watch_(std::move(watch)) {
  if (void* const library = CudaDriver::loaded_already(); library != nullptr) {
    ask_.store(find_pointer_get_attributes(library), std::memory_order_release);
  }
}

Result<std::shared_ptr<CudaDevice>> Devices::open(int index) {
  const MutexLock lock(mutex_);
  if (const auto found = opened_.find(index); found != opened_.end()) return found->second;
  if (!cuda_) {
    Result<std::shared_ptr<const Cuda>> cuda = Cuda::load(driver_);
    if (!cuda.ok()) {
      return Status(Code::kUnavailable, "a tensor on CUDA device " + std::to_string(index) +
                                            " was given, and " + cuda.status().message());
    }
    cuda_ = std::move(cuda).value();
  }
  Result<std::shared_ptr<CudaDevice>> device = CudaDevice::open(cuda_, index, watch_);
  if (!device.ok()) return device.status();
  opened_[index] = device.value();
  any_.store(device.value().get(), std::memory_order_release);
  ask_.store(cuda_->api().pointer_get_attributes, std::memory_order_release);
  return device;
}

Status Devices::look_up(const ConstTensorView& tensor) const {
  const auto ask = ask_.load(std::memory_order_acquire);
  const CudaDevice* const device = any_.load(std::memory_order_acquire);
  if (device == nullptr) return check_host_tensor(tensor, place_of(ask, tensor.data));
  const CurrentContext here = device->enter();
  return check_host_tensor(tensor, place_of(ask, tensor.data));
}

Status Devices::check(const CudaDevice& device, const ConstTensorView& tensor) const {
  if (tensor.bytes() == 0) return {};
  const auto ask = device.cuda().api().pointer_get_attributes;
  if (!on_device(tensor)) return check_host_tensor(tensor, place_of(ask, tensor.data));
  const Place first = place_of(ask, tensor.data);
  const Place last = place_of(ask, last_byte(tensor));
  if (const int error = std::max(first.error, last.error); error != 0) {
    return device.outcome("cuPointerGetAttributes",
                          error);  // as of every call, once a kernel fails
  }
  return check_device_tensor(tensor, first, last);
}

Status Devices::check(const CudaDevice& device, const std::string& call,
                      std::span<const ConstTensorView> inputs,
                      std::span<const TensorView> outputs) const {
  const CurrentContext here = device.enter();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (Status status = check(device, inputs[i]); !status.ok()) {
      return status.within(call + ", input");
    }
    if (are_the_same(inputs[i], outputs[i])) continue;
    if (Status status = check(device, outputs[i]); !status.ok()) {
      return status.within(call + ", output");
    }
  }
  return {};
}

Result<std::shared_ptr<StagedTensors>> Devices::stage(const std::string& call,
                                                      std::span<const ConstTensorView> inputs,
                                                      std::span<const TensorView> outputs,
                                                      CudaStream stream, Fetch when) {
  const Result<int> index = common_device(inputs, outputs);
  if (!index.ok()) return index.status().within(call);
  Result<std::shared_ptr<CudaDevice>> device = open(index.value());
  if (!device.ok()) return device.status().within(call);
  Status status = check(*device.value(), call, inputs, outputs);
  if (!status.ok()) return status;
  return StagedTensors::begin(std::move(device).value(), arrivals_, call, inputs, outputs, stream,
                              when);
}

Result<std::shared_ptr<CudaDevice>> Devices::device_of(const std::string& call,
                                                       std::span<const TensorView> tensors,
                                                       CudaStream stream) {
  const std::vector<ConstTensorView> inputs(tensors.begin(), tensors.end());
  const Result<int> index = common_device(inputs, tensors);
  if (!index.ok()) return index.status().within(call);
  Result<std::shared_ptr<CudaDevice>> device = open(index.value());
  if (!device.ok()) return device.status().within(call);
  if (Status status = check(*device.value(), call, inputs, tensors); !status.ok()) return status;
  const CurrentContext here = device.value()->enter();
  if (Status status = device.value()->check(stream); !status.ok()) return status.within(call);
  return device;
}

}  // namespace elastic::device
