#include "compression/tensor_block.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "compression/int8.hpp"
#include "compression/top_k.hpp"
#include "compression/two_bit.hpp"

namespace elastic::codecs {
namespace {

struct BlockHeader {
  std::uint32_t kind = 0;
  std::uint32_t parameter = 0;
  std::uint64_t bytes = 0;  ///< that follow
};
static_assert(sizeof(BlockHeader) == kBlockHeaderBytes);

/// The memory for the encoded elements, behind a header.
std::span<std::uint8_t> append(Message& message, CompressionKind kind, std::uint32_t parameter,
                               std::size_t bytes) {
  const std::size_t at = message.size();
  message.resize(at + kBlockHeaderBytes + bytes);
  write_block_header(kind, parameter, bytes, message.data() + at);
  return std::span(message).subspan(at + kBlockHeaderBytes);
}

/// The bytes of a block of `count` elements; nothing if no block can have this header.
std::optional<std::size_t> right_bytes(const BlockHeader& header, std::size_t count) {
  switch (static_cast<CompressionKind>(header.kind)) {
    case CompressionKind::kNone:
      return count * sizeof(float);
    case CompressionKind::kInt8:
      if (header.parameter == 0) return std::nullopt;
      return int8_bytes(count, header.parameter);
    case CompressionKind::kTwoBit:
      return two_bit_bytes(count);
    case CompressionKind::kTopK:
      return top_k_bytes(std::min<std::size_t>(header.bytes / top_k_bytes(1), count));
    case CompressionKind::kF16:
    case CompressionKind::kBF16:
      break;
  }
  return std::nullopt;
}

void add_whole(std::span<const std::uint8_t> bytes, std::span<float> sums) {
  for (std::size_t at = 0; at < sums.size(); ++at) {
    float value = 0;
    std::memcpy(&value, bytes.data() + at * sizeof(float), sizeof(float));
    sums[at] += value;
  }
}

void append_top_k(const Compression& compression, TensorMemory& memory, Message& message) {
  auto& [residual, momentum] = memory.staged;
  const std::size_t count = top_k_count(residual.size(), ratio_at(compression, memory.calls));
  if (top_k_bytes(count) >= residual.size() * sizeof(float)) {  // as in the first of a warm-up
    return append_block(compression, CompressionKind::kNone, memory, message);
  }
  const auto bytes = append(message, CompressionKind::kTopK, 0, top_k_bytes(count));
  encode_top_k(residual, momentum, count, bytes);
}

}  // namespace

void write_block_header(CompressionKind kind, std::uint32_t parameter, std::size_t bytes,
                        std::uint8_t* to) {
  const BlockHeader header{static_cast<std::uint32_t>(kind), parameter, bytes};
  std::memcpy(to, &header, sizeof(header));
}

void stage(std::span<const float> gradient, float momentum, TensorMemory& memory) {
  memory.staged.residual = memory.kept.residual;
  memory.staged.momentum = memory.kept.momentum;
  if (!memory.staged.momentum.empty()) {
    return correct_momentum(gradient, momentum, memory.staged.momentum, memory.staged.residual);
  }
  for (std::size_t at = 0; at < gradient.size(); ++at) memory.staged.residual[at] += gradient[at];
}

void append_block(const Compression& compression, CompressionKind kind, TensorMemory& memory,
                  Message& message) {
  auto& [residual, momentum] = memory.staged;
  switch (kind) {
    case CompressionKind::kInt8: {
      const std::size_t bytes = int8_bytes(residual.size(), compression.block);
      return encode_int8(residual, compression.block,
                         append(message, kind, compression.block, bytes));
    }
    case CompressionKind::kTwoBit: {
      const auto parameter = std::bit_cast<std::uint32_t>(compression.threshold);
      return encode_two_bit(residual, compression.threshold,
                            append(message, kind, parameter, two_bit_bytes(residual.size())));
    }
    case CompressionKind::kTopK:
      return append_top_k(compression, memory, message);
    default:
      append_whole(residual, message);
      std::ranges::fill(residual, 0.0F);
      std::ranges::fill(momentum, 0.0F);
  }
}

void append_whole(std::span<const float> values, Message& message) {
  const auto bytes = append(message, CompressionKind::kNone, 0, values.size_bytes());
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), values.size_bytes());
}

std::optional<EncodedBlock> take_block(std::span<const std::uint8_t>& message, std::size_t count) {
  BlockHeader header;
  if (message.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, message.data(), sizeof(header));
  message = message.subspan(sizeof(header));
  if (header.bytes > message.size() || right_bytes(header, count) != header.bytes) {
    return std::nullopt;
  }
  const auto bytes = message.first(header.bytes);
  message = message.subspan(header.bytes);
  return EncodedBlock{static_cast<CompressionKind>(header.kind), header.parameter, bytes};
}

bool add_block(std::span<const std::uint8_t>& message, std::span<float> sums) {
  const std::optional<EncodedBlock> block = take_block(message, sums.size());
  if (!block) return false;
  switch (block->kind) {
    case CompressionKind::kInt8:
      add_int8(block->bytes, block->parameter, sums);
      return true;
    case CompressionKind::kTwoBit:
      add_two_bit(block->bytes, std::bit_cast<float>(block->parameter), sums);
      return true;
    case CompressionKind::kTopK:
      return add_top_k(block->bytes, sums);
    default:
      add_whole(block->bytes, sums);
      return true;
  }
}

}  // namespace elastic::codecs
