#include "collectives/device/device_buffer.hpp"

#include <string>

namespace elastic::device {

Result<DeviceBuffer> DeviceBuffer::make(std::shared_ptr<CudaDevice> device, std::size_t bytes,
                                        const char* purpose) {
  if (bytes == 0) return DeviceBuffer();
  const CurrentContext here = device->enter();
  CudaApi::DevicePointer address = 0;
  Status status = device->outcome("cuMemAlloc", device->cuda().api().memory_alloc(&address, bytes));
  if (!status.ok()) {
    return status.within("no " + std::to_string(bytes) + " bytes of a device's memory for " +
                         purpose);
  }
  return DeviceBuffer(std::move(device), address, bytes);
}

DeviceBuffer::~DeviceBuffer() {
  if (address_ == 0) return;
  const CurrentContext here = device_->enter();
  device_->cuda().api().memory_free(address_);
}

Status DeviceBuffer::require(const std::shared_ptr<CudaDevice>& device, std::size_t bytes,
                             const char* purpose) {
  if (bytes <= bytes_ && (bytes == 0 || device_ == device)) return {};
  *this = DeviceBuffer();
  Result<DeviceBuffer> made = make(device, bytes, purpose);
  if (!made.ok()) return made.status();
  *this = std::move(made).value();
  return {};
}

}  // namespace elastic::device
