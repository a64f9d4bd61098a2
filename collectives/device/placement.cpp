#include "collectives/device/placement.hpp"

#include <array>
#include <string>

namespace elastic::device {

namespace {

// From cuda.h: attributes of pointers, and types of memory.
constexpr int kMemoryType = 2;
constexpr int kIsManaged = 8;
constexpr int kDeviceOrdinal = 9;
constexpr unsigned kHostType = 1;
constexpr unsigned kDeviceType = 2;
/// CUDA_ERROR_INVALID_VALUE: some drivers say it of an address that they do not know.
constexpr int kInvalidValue = 1;

std::string text(int device) {
  return "CUDA device " + std::to_string(device);
}

Status wrong(const ConstTensorView& tensor, const std::string& what) {
  return Status(Code::kInvalidArgument,
                "a tensor of " + std::to_string(tensor.count) + " elements " + what);
}

Status check_place(const ConstTensorView& tensor, const Place& place, const char* which) {
  const std::string claim =
      "was given as one on " + text(tensor.device.index) + ", and its " + which + " lies ";
  switch (place.kind) {
    case Place::Kind::kManaged:
      return {};
    case Place::Kind::kDevice:
      if (place.device == tensor.device.index) return {};
      return wrong(tensor, claim + "on " + text(place.device) +
                               ": name that one (TensorView::device), or copy the tensor");
    case Place::Kind::kHost:
      return wrong(tensor, claim +
                               "in host memory that CUDA has pinned: give it as a host tensor "
                               "(elastic::view), or copy it to the device");
    case Place::Kind::kUnknown:
      break;
  }
  return wrong(tensor, claim +
                           "at an address that CUDA does not know, such as in host memory: "
                           "give it as a host tensor (elastic::view), or copy it to the "
                           "device");
}

}  // namespace

Place place_of(decltype(CudaApi::pointer_get_attributes) ask, const void* address) {
  unsigned type = 0;
  unsigned managed = 0;
  int device = 0;
  std::array<int, 3> which{kMemoryType, kIsManaged, kDeviceOrdinal};
  std::array<void*, 3> values{&type, &managed, &device};
  const auto pointer =
      static_cast<CudaApi::DevicePointer>(reinterpret_cast<std::uintptr_t>(address));
  const int error = ask(static_cast<unsigned>(which.size()), which.data(), values.data(), pointer);
  if (error != 0) return {Place::Kind::kUnknown, 0, error == kInvalidValue ? 0 : error};
  if (managed != 0) return {Place::Kind::kManaged, device};
  if (type == kDeviceType) return {Place::Kind::kDevice, device};
  if (type == kHostType) return {Place::Kind::kHost, 0};
  return {};
}

Status check_device_tensor(const ConstTensorView& tensor, const Place& first, const Place& last) {
  if (Status status = check_place(tensor, first, "first byte"); !status.ok()) return status;
  return check_place(tensor, last, "last byte");
}

Status check_host_tensor(const ConstTensorView& tensor, const Place& first) {
  if (first.kind != Place::Kind::kDevice) return {};
  return wrong(tensor, "was given as one in host memory, and lies on " + text(first.device) +
                           ": give it as a device tensor (elastic::cuda_view), or copy it to the "
                           "host");
}

}  // namespace elastic::device
