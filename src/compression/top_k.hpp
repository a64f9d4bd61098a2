#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "elastic/compression.hpp"

namespace elastic::codecs {

/// Share of the elements to send in the step of this number, from 0: in the warm-up from 1/4
/// geometrically down to Compression::ratio. That is DGC's 75 %, 93.75 %, 98.44 % and 99.6 % left
/// out in its four epochs before 99.9 %, step by step.
double ratio_at(const Compression& compression, std::uint64_t step);

/// Elements to send of `count`: `ratio` of them, rounded, and at least one of any.
std::size_t top_k_count(std::size_t count, double ratio);

/// DGC's momentum correction: u = momentum * u + g; v = v + u.
void correct_momentum(std::span<const float> gradient, float momentum, std::span<float> u,
                      std::span<float> v);

/// Indices of the `count` greatest magnitudes, ascending; of equal ones the first. NaN is greater
/// than Inf, and Inf than all numbers.
std::vector<std::uint32_t> greatest(std::span<const float> values, std::size_t count);

/// Bytes that `count` sent elements take: an index and a value each.
std::size_t top_k_bytes(std::size_t count);

/// Sends the `count` greatest of v, of at most 2^32 elements, and sets them to 0 in v and, where
/// there is a u, in u (DGC's momentum factor masking). NaN and Inf that are not sent become 0, too.
void encode_top_k(std::span<float> v, std::span<float> u, std::size_t count,
                  std::span<std::uint8_t> bytes);

/// Whether all indices are below `count`, and each is above the one before it.
bool has_right_indices(std::span<const std::uint8_t> bytes, std::size_t count);

/// False, and `sums` undefined, where an index is none of theirs.
[[nodiscard]] bool add_top_k(std::span<const std::uint8_t> bytes, std::span<float> sums);

}  // namespace elastic::codecs
