#pragma once

#include "base/status.hpp"
#include "collectives/device/cuda.hpp"
#include "elastic/types.hpp"

namespace elastic::device {

/// Where an address lies, by what the CUDA driver knows.
struct Place {
  enum class Kind : std::uint8_t {
    kUnknown,  ///< the driver does not know it: memory of the host alone, or none at all
    kHost,     ///< memory of the host that CUDA can reach, such as pinned
    kDevice,
    kManaged,  ///< goes to and fro by itself
  };
  Kind kind = Kind::kUnknown;
  int device = 0;  ///< kDevice: its number
  int error = 0;   ///< of CUDA, where it has failed: kUnknown says nothing then
};

inline bool on_device(const ConstTensorView& tensor) {
  return tensor.device.kind == Device::Kind::kCuda;
}

/// Asks the driver.
Place place_of(decltype(CudaApi::pointer_get_attributes) ask, const void* address);

/// kInvalidArgument, with what to do, where a tensor that was given as one on a CUDA device lies
/// elsewhere: its first and its last byte lie at these places.
Status check_device_tensor(const ConstTensorView& tensor, const Place& first, const Place& last);
/// The same for a tensor that was passed as one in host memory.
Status check_host_tensor(const ConstTensorView& tensor, const Place& first);

}  // namespace elastic::device
