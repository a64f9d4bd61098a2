#include "compression/device_allreduce.hpp"

#include <string>
#include <utility>

#include "base/log.hpp"
#include "base/public_code.hpp"
#include "elastic/error.hpp"

namespace elastic::codecs {

namespace {

constexpr const char* kCall = "GradientCompressor";

std::vector<TensorView> views_of(std::span<const NamedTensor> tensors) {
  std::vector<TensorView> views;
  for (const NamedTensor& tensor : tensors) views.push_back(tensor.data);
  return views;
}

}  // namespace

void require_device(const Status& status) {
  if (!status.ok()) {
    const Status named = status.within(kCall);
    throw Error(public_code(named.code()), named.message());
  }
}

void require_result(const Status& status) {
  if (!status.ok()) {
    throw Error(public_code(status.code()),
                std::string(kCall) + ": " + status.message() +
                    "; the other workers have the sums, and this worker's tensors are undefined: "
                    "end this worker");
  }
}

DeviceCodec* DeviceAllreduce::codec_of(std::span<const NamedTensor> tensors, CudaStream stream) {
  auto device = devices_.device_of(kCall, views_of(tensors), stream);
  if (!device.ok()) throw Error(public_code(device.status().code()), device.status().message());
  const auto known = codecs_.find(device.value().get());
  if (known != codecs_.end()) return known->second.get();
  auto codec = DeviceCodec::load(device.value(), image_);
  if (!codec.ok()) {
    log::info("{}: gradients on {} are compressed in host memory: {}", kCall,
              device.value()->name(), codec.status().message());
  }
  std::unique_ptr<DeviceCodec> loaded = codec.ok() ? std::move(codec).value() : nullptr;
  return codecs_.emplace(device.value().get(), std::move(loaded)).first->second.get();
}

std::vector<DeviceTensorMemory*> DeviceAllreduce::memories_of(std::span<const NamedTensor> tensors,
                                                              const DeviceCodec& codec,
                                                              void* stream) {
  const bool has_momentum =
      compression_.kind == CompressionKind::kTopK && compression_.momentum != 0;
  std::vector<DeviceTensorMemory*> memories;
  for (const NamedTensor& tensor : tensors) {
    memories.push_back(nullptr);
    if (tensor.whole) continue;
    auto memory = residuals_.of(tensor.name, tensor.data.count, has_momentum, codec, stream);
    require_device(memory.status());
    if (memory.value()->codec != &codec) {
      throw Error(ErrorCode::kInvalidArgument,
                  std::string(kCall) + ": tensor '" + std::string(tensor.name) +
                      "' was on another device before, where its residual is; give it a name of "
                      "its own, or call reset()");
    }
    memories.back() = memory.value();
  }
  return memories;
}

Contributors DeviceAllreduce::allreduce(DeviceCodec& codec, std::span<const NamedTensor> tensors,
                                        ReduceOp op, CudaStream stream, bool whole,
                                        GradientCompressor::Traffic& traffic) {
  DeviceWork work(codec.device(), stream.handle, kCall);
  DeviceCall call{tensors, op, compression_, codec, work, {}};
  {
    const device::CurrentContext here = work.device().enter();
    call.memories = memories_of(tensors, codec, stream.handle);
  }
  const bool as_halves =
      compression_.kind == CompressionKind::kF16 || compression_.kind == CompressionKind::kBF16;
  const CompressionKind kind = whole ? CompressionKind::kNone : compression_.kind;
  Contributors contributors =
      as_halves ? sum_halves_on_device(call, collectives_, scratch_, traffic)
                : exchange_from_device(call, kind, collectives_, scratch_, traffic);
  for (DeviceTensorMemory* const memory : call.memories) {
    if (memory != nullptr) memory->commit();
  }
  return contributors;
}

std::vector<float> DeviceAllreduce::residual(std::string_view name) const {
  const DeviceTensorMemory* const memory = residuals_.find(name);
  if (memory == nullptr) return {};
  std::vector<float> values(memory->count);
  if (values.empty()) return values;
  const device::CudaDevice& device = *memory->codec->device();
  const device::CurrentContext here = device.enter();
  const device::CudaApi& api = device.cuda().api();
  const std::size_t bytes = values.size() * sizeof(float);
  Status status = device.outcome(
      "cuMemcpyDtoHAsync",
      api.copy_to_host(values.data(), memory->kept.residual.address(), bytes, device.to_host()));
  const Status done =
      device.outcome("cuStreamSynchronize", api.stream_synchronize(device.to_host()));
  require_device(status.ok() ? done : status);
  return values;
}

}  // namespace elastic::codecs
