// An allreduce of halves that lie on a device, as those of other ranks in host memory.
#include <cstdint>
#include <vector>

#include "compression/device_call.hpp"
#include "compression/ring_bytes.hpp"

namespace elastic::codecs {

namespace {

/// Good for all accesses and copies.
constexpr std::size_t kAlignment = 256;

std::size_t room_for(const NamedTensor& tensor) {
  const std::size_t bytes = tensor.data.count * sizeof(std::uint16_t);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Where the halves of each tensor lie; null for whole ones.
std::vector<std::uint16_t*> places_of(const DeviceCall& call, DeviceScratch& scratch) {
  std::size_t bytes = 0;
  for (std::size_t at = 0; at < call.tensors.size(); ++at) {
    if (call.memories[at] != nullptr) bytes += room_for(call.tensors[at]);
  }
  require_device(scratch.sent.require(call.codec.device(), bytes, "gradients as halves"));
  std::vector<std::uint16_t*> places;
  std::size_t offset = 0;
  for (std::size_t at = 0; at < call.tensors.size(); ++at) {
    if (call.memories[at] == nullptr) {
      places.push_back(nullptr);
      continue;
    }
    places.push_back(scratch.sent.data<std::uint16_t>() + offset / sizeof(std::uint16_t));
    offset += room_for(call.tensors[at]);
  }
  return places;
}

float scale_of(const DeviceCall& call) {
  return call.compression.kind == CompressionKind::kF16 ? call.compression.scale : 1.0F;
}

Status encode(const DeviceCall& call, const std::vector<std::uint16_t*>& halves) {
  for (std::size_t at = 0; at < call.tensors.size(); ++at) {
    if (call.memories[at] == nullptr) continue;
    const TensorView& data = call.tensors[at].data;
    Status status = call.codec.queue(
        kernels::codec::EncodeHalf{data.data, call.memories[at]->kept.residual.data<float>(),
                                   call.memories[at]->staged.residual.data<float>(), halves[at],
                                   data.count, scale_of(call), data.dtype == DType::kF64,
                                   call.compression.kind == CompressionKind::kBF16},
        call.work.stream());
    if (!status.ok()) return status;
  }
  return {};
}

Status decode(const DeviceCall& call, const std::vector<std::uint16_t*>& halves, float divisor) {
  for (std::size_t at = 0; at < call.tensors.size(); ++at) {
    const TensorView& data = call.tensors[at].data;
    const bool is_double = data.dtype == DType::kF64;
    Status status;
    if (call.memories[at] != nullptr) {
      status = call.codec.queue(
          kernels::codec::DecodeHalf{halves[at], data.data, data.count, scale_of(call), divisor,
                                     is_double, call.compression.kind == CompressionKind::kBF16},
          call.work.stream());
    } else if (divisor != 1) {
      status = call.codec.queue(kernels::codec::Divide{data.data, data.count, divisor, is_double},
                                call.work.stream());
    }
    if (!status.ok()) return status;
  }
  return {};
}

/// Each tensor as it travels: nothing is cast any more.
std::vector<CastTensor> sent_tensors(const DeviceCall& call,
                                     const std::vector<std::uint16_t*>& halves) {
  const DType half = call.compression.kind == CompressionKind::kBF16 ? DType::kBF16 : DType::kF16;
  std::vector<CastTensor> sent;
  for (std::size_t at = 0; at < call.tensors.size(); ++at) {
    TensorView data = call.tensors[at].data;
    if (call.memories[at] != nullptr) data = {halves[at], data.count, half, data.device};
    sent.push_back({data, data.dtype, 1});
  }
  return sent;
}

}  // namespace

Contributors sum_halves_on_device(const DeviceCall& call,
                                  const GradientCompressor::Collectives& collectives,
                                  DeviceScratch& scratch, GradientCompressor::Traffic& traffic) {
  const std::vector<std::uint16_t*> halves = places_of(call, scratch);
  {
    const device::CurrentContext here = call.work.device().enter();
    require_device(encode(call, halves));
  }
  const std::vector<CastTensor> sent = sent_tensors(call, halves);
  Contributors contributors =
      collectives.cast_allreduce(sent, ReduceOp::kSum, {call.work.stream()});
  for (const CastTensor& one : sent) traffic.encoded += one.data.bytes();
  traffic.sent = ring_bytes(traffic.encoded, contributors.size());
  const device::CurrentContext here = call.work.device().enter();
  require_result(decode(call, halves, call.divisor(contributors.size())));
  require_result(call.work.wait());
  return contributors;
}

}  // namespace elastic::codecs
