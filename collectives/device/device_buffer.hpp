#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "base/status.hpp"
#include "collectives/device/cuda_device.hpp"

namespace elastic::device {

/// Memory of a device, freed with its owner. Belongs to one thread at a time.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  /// kUnavailable where the device has no such memory left, with `purpose`, for messages. For 0
  /// bytes it is empty.
  static Result<DeviceBuffer> make(std::shared_ptr<CudaDevice> device, std::size_t bytes,
                                   const char* purpose);
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : device_(std::move(other.device_)),
        address_(std::exchange(other.address_, 0)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceBuffer();

  /// Replaces the memory if it has fewer bytes. Its content is lost then, and nothing may use it
  /// any more.
  Status require(const std::shared_ptr<CudaDevice>& device, std::size_t bytes, const char* purpose);

  CudaApi::DevicePointer address() const { return address_; }
  std::size_t bytes() const { return bytes_; }
  /// As an address of the device, for the parameters of kernels.
  template <typename T>
  T* data() const {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver has numbers
    return reinterpret_cast<T*>(address_);
  }

 private:
  DeviceBuffer(std::shared_ptr<CudaDevice> device, CudaApi::DevicePointer address,
               std::size_t bytes)
      : device_(std::move(device)), address_(address), bytes_(bytes) {}

  std::shared_ptr<CudaDevice> device_;
  CudaApi::DevicePointer address_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace elastic::device
