#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/status.hpp"
#include "collectives/device/cuda_device.hpp"

namespace elastic::codecs {

/// The work that a call has queued on the program's stream. Memory of the call may be used again
/// only after this has ended, which waits for the work.
class DeviceWork {
 public:
  /// `call` is the name of the call in messages.
  DeviceWork(std::shared_ptr<device::CudaDevice> device, void* stream, std::string call);
  ~DeviceWork();
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;

  void* stream() const { return stream_; }
  const device::CudaDevice& device() const { return *device_; }
  /// Waits until the device has done all of it. Within CudaDevice::enter.
  Status wait();

 private:
  const std::shared_ptr<device::CudaDevice> device_;
  void* const stream_;
  const std::string call_;
  void* event_ = nullptr;
};

}  // namespace elastic::codecs
