#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compression/residuals.hpp"
#include "elastic/compression.hpp"

namespace elastic::codecs {

/// Bytes as they travel, in the byte order of the machine; the native backend refuses another.
using Message = std::vector<std::uint8_t>;

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
