#include "benchmarks/job/host_copy.hpp"

#include <memory>

namespace elastic::bench {

Allocation tensor_memory(const RankDevice* device, std::size_t bytes) {
  if (device != nullptr) return device->allocate(bytes);
  return {std::shared_ptr<std::byte>(new std::byte[bytes](), std::default_delete<std::byte[]>()),
          bytes};
}

TensorView tensor_in(const Allocation& memory, DType dtype, const RankDevice* device) {
  return {memory.data(), memory.bytes() / size_of(dtype), dtype,
          device != nullptr ? device->device() : Device{}};
}

HostCopy::HostCopy(const TensorView& tensor, const RankDevice* device)
    : device_(device),
      tensor_(tensor),
      copy_(device != nullptr ? tensor.bytes() : 0),
      view_(tensor) {
  if (device_ != nullptr) view_ = {copy_.data(), tensor.count, tensor.dtype, {}};
}

void HostCopy::read() const {
  if (device_ != nullptr) device_->copy(tensor_, view_);
}

void HostCopy::write() const {
  if (device_ != nullptr) device_->copy(view_, tensor_);
}

}  // namespace elastic::bench
