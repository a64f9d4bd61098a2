#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compression/residuals.hpp"
#include "elastic/compression.hpp"

namespace elastic::codecs {

/// Bytes as they travel, in the byte order of the machine; the native backend refuses another.
using Message = std::vector<std::uint8_t>;

/// Bytes in front of the encoded elements of a tensor.
inline constexpr std::size_t kBlockHeaderBytes = 16;

/// The encoded elements of a tensor, as `message` has them.
struct EncodedBlock {
  CompressionKind kind = CompressionKind::kNone;
  std::uint32_t parameter = 0;  ///< kInt8: block. kTwoBit: bits of the threshold
  std::span<const std::uint8_t> bytes;
};

/// Writes the header of a block with so many encoded bytes.
void write_block_header(CompressionKind kind, std::uint32_t parameter, std::size_t bytes,
                        std::uint8_t* to);

/// Takes the block at the front of `message` off. Nothing where it is no block of `count` elements;
/// the indices of kTopK are not looked at.
std::optional<EncodedBlock> take_block(std::span<const std::uint8_t>& message, std::size_t count);

/// Stages gradient + residual (kTopK: after momentum correction) in `memory`.
void stage(std::span<const float> gradient, float momentum, TensorMemory& memory);

/// Appends the sent part of the staged values: a header that says how to read the rest, and the
/// encoded elements. The unsent part stays staged. `kind` is not kF16 or kBF16; kNone sends
/// everything.
void append_block(const Compression& compression, CompressionKind kind, TensorMemory& memory,
                  Message& message);

/// Appends all of `values`, as kNone does.
void append_whole(std::span<const float> values, Message& message);

/// Adds the block at the front of `message` to `sums`, and takes it off. False, and `sums`
/// undefined, where it is no block of as many elements.
[[nodiscard]] bool add_block(std::span<const std::uint8_t>& message, std::span<float> sums);

}  // namespace elastic::codecs
