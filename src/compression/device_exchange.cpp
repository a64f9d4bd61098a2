// An exchange of encoded gradients from a device: encoded there, exchanged in host memory as those
// of other ranks, decoded and added on the device.
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compression/block_sum.hpp"
#include "compression/device_call.hpp"
#include "compression/envelope.hpp"
#include "compression/int8.hpp"
#include "compression/tensor_block.hpp"
#include "compression/top_k.hpp"
#include "elastic/error.hpp"

namespace elastic::codecs {

namespace {

/// The block of a tensor in this worker's message.
struct Place {
  CompressionKind kind = CompressionKind::kNone;
  std::uint32_t parameter = 0;
  std::uint32_t sent = 0;  // elements of kTopK
  std::size_t bytes = 0;   // behind the header
  std::size_t offset = 0;  // of the bytes in the message
};

/// As append_block chooses.
Place place_of(const DeviceCall& call, CompressionKind kind, std::size_t at) {
  const std::size_t count = call.tensors[at].data.count;
  const Place whole{CompressionKind::kNone, 0, 0, count * sizeof(float), 0};
  const DeviceTensorMemory* const memory = call.memories[at];
  if (memory == nullptr) return whole;
  if (kind == CompressionKind::kInt8) {
    return {kind, call.compression.block, 0, int8_bytes(count, call.compression.block), 0};
  }
  if (kind != CompressionKind::kTopK) return whole;
  const std::size_t sent = top_k_count(count, ratio_at(call.compression, memory->calls));
  if (top_k_bytes(sent) >= whole.bytes) return whole;
  return {kind, 0, static_cast<std::uint32_t>(sent), top_k_bytes(sent), 0};
}

std::vector<Place> lay_out(const DeviceCall& call, CompressionKind kind, std::size_t begin) {
  std::vector<Place> places;
  for (std::size_t at = 0; at < call.tensors.size(); ++at) {
    Place& place = places.emplace_back(place_of(call, kind, at));
    place.offset = begin + kBlockHeaderBytes;
    begin = place.offset + place.bytes;
  }
  return places;
}

/// Encodes a tensor to `bytes` on the device. The unsent part is staged.
Status encode(const DeviceCall& call, std::size_t at, const Place& place, std::uint8_t* bytes) {
  void* const stream = call.work.stream();
  const TensorView& data = call.tensors[at].data;
  const auto* const gradient = static_cast<const float*>(data.data);
  DeviceTensorMemory* const memory = call.memories[at];
  if (memory == nullptr) {
    return call.codec.queue(
        kernels::codec::EncodeWhole{gradient, nullptr, nullptr, bytes, data.count}, stream);
  }
  auto* const residual = memory->staged.residual.data<float>();
  auto* const momentum = memory->staged.momentum.data<float>();
  Status status =
      call.codec.queue(kernels::codec::Stage{gradient, memory->kept.residual.data<float>(),
                                             memory->kept.momentum.data<float>(), residual,
                                             momentum, data.count, call.compression.momentum},
                       stream);
  if (!status.ok()) return status;
  switch (place.kind) {
    case CompressionKind::kInt8:
      return call.codec.queue(
          kernels::codec::EncodeInt8{residual, bytes, data.count, place.parameter}, stream);
    case CompressionKind::kTopK:
      return call.codec.queue(kernels::codec::EncodeTopK{residual, momentum, nullptr, nullptr,
                                                         bytes, data.count, place.sent, 0},
                              stream);
    default:
      return call.codec.queue(
          kernels::codec::EncodeWhole{residual, residual, momentum, bytes, data.count}, stream);
  }
}

Result<device::BlockPool::Block> encode(const DeviceCall& call, const std::vector<Place>& places,
                                        std::size_t bytes, DeviceScratch& scratch) {
  Status status =
      scratch.sent.require(call.codec.device(), bytes, "the encoded gradients of a call");
  if (!status.ok()) return status;
  const device::CurrentContext here = call.work.device().enter();
  for (std::size_t at = 0; at < places.size(); ++at) {
    status = encode(call, at, places[at], scratch.sent.data<std::uint8_t>() + places[at].offset);
    if (!status.ok()) return status;
  }
  Result<device::BlockPool::Block> block = call.codec.device()->pinned().lend(bytes);
  if (!block.ok()) return block;
  status = call.work.device().outcome(
      "cuMemcpyDtoHAsync",
      call.work.device().cuda().api().copy_to_host(block.value().data(), scratch.sent.address(),
                                                   bytes, call.work.stream()));
  // Also after a failure: the memory is lent again.
  Status done = call.work.wait();
  if (!status.ok()) return status;
  return done.ok() ? std::move(block) : Result<device::BlockPool::Block>(done);
}

/// The message of this worker, as append_block makes it of tensors in host memory.
device::BlockPool::Block make_message(const DeviceCall& call, CompressionKind kind,
                                      DeviceScratch& scratch, std::size_t& bytes) {
  const Message front = begin_message(call.tensors, call.op);
  const std::vector<Place> places = lay_out(call, kind, front.size());
  bytes = places.empty() ? front.size() : places.back().offset + places.back().bytes;
  Result<device::BlockPool::Block> block = encode(call, places, bytes, scratch);
  require_device(block.status());
  auto* const message = reinterpret_cast<std::uint8_t*>(block.value().data());
  std::memcpy(message, front.data(), front.size());
  for (const Place& place : places) {
    write_block_header(place.kind, place.parameter, place.bytes,
                       message + place.offset - kBlockHeaderBytes);
  }
  return std::move(block).value();
}

/// The blocks of a tensor, in rank order.
using Blocks = std::vector<EncodedBlock>;

EncodedBlock take(std::span<const std::uint8_t>& message, const NamedTensor& tensor, int rank) {
  const std::optional<EncodedBlock> block = take_block(message, tensor.data.count);
  if (!block || (block->kind == CompressionKind::kTopK &&
                 !has_right_indices(block->bytes, tensor.data.count))) {
    throw Error(ErrorCode::kInternal,
                "GradientCompressor: what rank " + std::to_string(rank) + " sent of tensor '" +
                    std::string(tensor.name) + "' is no block of its elements",
                rank);
  }
  if (block->kind == CompressionKind::kTwoBit) {
    throw Error(ErrorCode::kMismatch,
                "GradientCompressor: rank " + std::to_string(rank) + " compresses tensor '" +
                    std::string(tensor.name) +
                    "' by two_bit, which kernels for devices do not decode: take the same kind on "
                    "all",
                rank);
  }
  return *block;
}

/// By tensor.
std::vector<Blocks> blocks_of(const DeviceCall& call, const Gathered<std::uint8_t>& gathered) {
  auto messages = open_messages(gathered);
  std::vector<Blocks> all;
  for (const NamedTensor& tensor : call.tensors) {
    Blocks& blocks = all.emplace_back();
    for (std::size_t rank = 0; rank < messages.size(); ++rank) {
      blocks.push_back(take(messages[rank], tensor, static_cast<int>(rank)));
    }
  }
  return all;
}

/// `on_device` is where the gathered bytes at `host` lie on the device.
Status decode(const DeviceCall& call, const std::vector<Blocks>& all, const std::uint8_t* host,
              const std::uint8_t* on_device, float divisor) {
  for (std::size_t at = 0; at < call.tensors.size(); ++at) {
    BlockSum sum(call.codec, call.tensors[at].data, call.work.stream());
    for (const EncodedBlock& block : all[at]) {
      Status status = sum.add(block, on_device + (block.bytes.data() - host));
      if (!status.ok()) return status;
    }
    Status status = sum.divide(divisor);
    if (!status.ok()) return status;
  }
  return {};
}

/// In rank order on all ranks, so that all get the same bits.
Status decode(const DeviceCall& call, const std::vector<Blocks>& all,
              const Gathered<std::uint8_t>& gathered, DeviceScratch& scratch) {
  const std::size_t bytes = gathered.values.size();
  Result<device::BlockPool::Block> block = call.codec.device()->pinned().lend(bytes);
  if (!block.ok()) return block.status();
  Status status =
      scratch.gathered.require(call.codec.device(), bytes, "the encoded gradients of all workers");
  if (!status.ok()) return status;
  std::memcpy(block.value().data(), gathered.values.data(), bytes);
  const device::CudaDevice& device = call.work.device();
  const device::CurrentContext here = device.enter();
  status = device.outcome("cuMemcpyHtoDAsync", device.cuda().api().copy_to_device(
                                                   scratch.gathered.address(), block.value().data(),
                                                   bytes, call.work.stream()));
  if (status.ok()) {
    status = decode(call, all, gathered.values.data(), scratch.gathered.data<std::uint8_t>(),
                    call.divisor(gathered.contributors.size()));
  }
  // Also after a failure: the memory is lent again.
  Status done = call.work.wait();
  return status.ok() ? done : status;
}

}  // namespace

Contributors exchange_from_device(const DeviceCall& call, CompressionKind kind,
                                  const GradientCompressor::Collectives& collectives,
                                  DeviceScratch& scratch, GradientCompressor::Traffic& traffic) {
  std::size_t bytes = 0;
  const device::BlockPool::Block message = make_message(call, kind, scratch, bytes);
  const Gathered<std::uint8_t> gathered = collectives.allgather(
      std::span(reinterpret_cast<const std::uint8_t*>(message.data()), bytes));
  const std::vector<Blocks> blocks = blocks_of(call, gathered);
  require_result(decode(call, blocks, gathered, scratch));
  traffic.encoded = bytes;
  traffic.sent = bytes * (gathered.contributors.size() - 1);
  return gathered.contributors;
}

}  // namespace elastic::codecs
