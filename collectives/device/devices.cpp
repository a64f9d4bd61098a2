#include "collectives/device/devices.hpp"

#include <algorithm>
#include <utility>

#include "base/cuda_driver.hpp"

namespace elastic::device {

namespace {

Status invalid(const std::string& what) {
  return Status(Code::kInvalidArgument, what);
}

/// That all can go over one stream, and none has to change its place.
Status check_devices(std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs,
                     int index) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (on_device(inputs[i]) != on_device(outputs[i]) ||
        inputs[i].device.index != outputs[i].device.index) {
      return invalid(
          "allreduce: input and output lie on different devices, or one of them in host memory; "
          "they must lie alike");
    }
    if (on_device(inputs[i]) && inputs[i].device.index != index) {
      return invalid("one call has tensors on CUDA device " + std::to_string(index) +
                     " and on CUDA device " + std::to_string(inputs[i].device.index) +
                     ": make a call for each device");
    }
  }
  return {};
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
  const std::lock_guard<std::mutex> lock(mutex_);
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
  return check_device_tensor(tensor, place_of(ask, tensor.data), place_of(ask, last_byte(tensor)));
}

Result<std::shared_ptr<StagedTensors>> Devices::stage(std::span<const ConstTensorView> inputs,
                                                      std::span<const TensorView> outputs,
                                                      CudaStream stream, Caller caller,
                                                      Fetch when) {
  const auto first = std::find_if(inputs.begin(), inputs.end(), on_device);
  const int index = first == inputs.end() ? 0 : first->device.index;
  if (Status status = check_devices(inputs, outputs, index); !status.ok()) return status;
  Result<std::shared_ptr<CudaDevice>> device = open(index);
  if (!device.ok()) return device.status();
  {
    const CurrentContext here = device.value()->enter();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Status status = check(*device.value(), inputs[i]);
      if (status.ok() && outputs[i].data != inputs[i].data) {
        status = check(*device.value(), outputs[i]);
      }
      if (!status.ok()) return status;
    }
  }
  return StagedTensors::begin(std::move(device).value(), arrivals_, inputs, outputs, stream, caller,
                              when);
}

Result<std::unique_ptr<StagedCall>> Devices::stage_call(const std::string& call,
                                                        const ConstTensorView& input,
                                                        const TensorView& output, CudaStream stream,
                                                        Fetch when) {
  if (on_device(input) && on_device(output) && input.device.index != output.device.index) {
    return invalid(call + ": the input lies on CUDA device " + std::to_string(input.device.index) +
                   " and the output on CUDA device " + std::to_string(output.device.index) +
                   "; give them on the same, or one of them in host memory");
  }
  Result<std::shared_ptr<CudaDevice>> device =
      open(on_device(input) ? input.device.index : output.device.index);
  if (!device.ok()) return device.status().within(call);
  {
    const CurrentContext here = device.value()->enter();
    if (Status status = check(*device.value(), input); !status.ok()) {
      return status.within(call + ", input");
    }
    if (Status status = check(*device.value(), output); !status.ok()) {
      return status.within(call + ", output");
    }
  }
  return StagedCall::begin(std::move(device).value(), call, input, output, stream, when);
}

}  // namespace elastic::device
