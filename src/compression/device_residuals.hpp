#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/status.hpp"
#include "collectives/device/device_buffer.hpp"
#include "compression/device_codec.hpp"

namespace elastic::codecs {

/// As Remainder, in the memory of a device.
struct DeviceRemainder {
  device::DeviceBuffer residual;
  device::DeviceBuffer momentum;  // empty: the kind has none
};

/// As TensorMemory, in the memory of a device.
struct DeviceTensorMemory {
  const DeviceCodec* codec = nullptr;  // of its device
  DeviceRemainder kept;
  DeviceRemainder staged;
  std::size_t count = 0;
  std::uint64_t calls = 0;

  /// Puts what is staged in force. Its kernels have ended.
  void commit();
};

/// The memories of all tensors on devices, by name. Belongs to one thread at a time.
class DeviceResiduals {
 public:
  /// The memory of `name`, of a size that does not change; zeros at its first call, once the stream
  /// has come to them. References stay valid. Within CudaDevice::enter.
  Result<DeviceTensorMemory*> of(std::string_view name, std::size_t count, bool with_momentum,
                                 const DeviceCodec& codec, void* stream);

  /// Null: none yet.
  const DeviceTensorMemory* find(std::string_view name) const;

  /// Waits until the devices have done it.
  Status rescale(float factor);
  void clear() { memories_.clear(); }
  /// First number of calls of memories made from now on.
  void begin_at(std::uint64_t calls) { first_ = calls; }

 private:
  std::map<std::string, DeviceTensorMemory, std::less<>> memories_;
  std::uint64_t first_ = 0;
};

}  // namespace elastic::codecs
