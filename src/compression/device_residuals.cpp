#include "compression/device_residuals.hpp"

#include <functional>
#include <utility>

namespace elastic::codecs {

namespace {

Result<DeviceRemainder> make(std::size_t count, bool with_momentum, const DeviceCodec& codec) {
  constexpr const char* kPurpose = "the part of a gradient that is not sent yet";
  const std::size_t bytes = count * sizeof(float);
  auto residual = device::DeviceBuffer::make(codec.device(), bytes, kPurpose);
  if (!residual.ok()) return residual.status();
  auto momentum = device::DeviceBuffer::make(codec.device(), with_momentum ? bytes : 0, kPurpose);
  if (!momentum.ok()) return momentum.status();
  return DeviceRemainder{std::move(residual).value(), std::move(momentum).value()};
}

}  // namespace

void DeviceTensorMemory::commit() {
  std::swap(kept, staged);
  ++calls;
}

Result<DeviceTensorMemory*> DeviceResiduals::of(std::string_view name, std::size_t count,
                                                bool with_momentum, const DeviceCodec& codec,
                                                void* stream) {
  const auto found = memories_.find(name);
  if (found != memories_.end()) return &found->second;
  Result<DeviceRemainder> kept = make(count, with_momentum, codec);
  if (!kept.ok()) return kept.status();
  Result<DeviceRemainder> staged = make(count, with_momentum, codec);
  if (!staged.ok()) return staged.status();
  DeviceTensorMemory memory{&codec, std::move(kept).value(), std::move(staged).value(), count,
                            first_};
  Status status =
      codec.queue(kernels::codec::Clear{memory.kept.residual.data<float>(), count}, stream);
  if (status.ok() && with_momentum) {
    status = codec.queue(kernels::codec::Clear{memory.kept.momentum.data<float>(), count}, stream);
  }
  if (!status.ok()) return status;
  return &memories_.emplace(name, std::move(memory)).first->second;
}

const DeviceTensorMemory* DeviceResiduals::find(std::string_view name) const {
  const auto found = memories_.find(name);
  return found == memories_.end() ? nullptr : &found->second;
}

Status DeviceResiduals::rescale(float factor) {
  for (auto& [name, memory] : memories_) {
    const device::CudaDevice& device = *memory.codec->device();
    const device::CurrentContext here = device.enter();
    void* const stream = device.to_device();
    Status status = memory.codec->queue(
        kernels::codec::Rescale{memory.kept.residual.data<float>(), memory.count, factor}, stream);
    if (status.ok()) {
      status =
          device.outcome("cuStreamSynchronize", device.cuda().api().stream_synchronize(stream));
    }
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace elastic::codecs
