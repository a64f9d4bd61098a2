#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compression/tensor_block.hpp"
#include "elastic/context.hpp"
#include "elastic/gradient_compressor.hpp"

namespace elastic::codecs {

/// The front of a message: a fingerprint of what all members must give alike, names, sizes and op.
Message begin_message(std::span<const NamedTensor> tensors, ReduceOp op);

/// The messages of all contributors, in rank order, behind their fingerprints. Throws
/// Error(kMismatch) where one is not like the first: the same error on all members.
std::vector<std::span<const std::uint8_t>> open_messages(const Gathered<std::uint8_t>& gathered);

}  // namespace elastic::codecs
