#pragma once

#include <span>
#include <string>

#include "elastic/gradient_compressor.hpp"

namespace elastic::codecs {

/// Throws Error(kInvalidArgument) of a GradientCompressor.
[[noreturn]] void invalid(const std::string& message);

/// Throws Error(kInvalidArgument) unless a GradientCompressor can sum these tensors.
void check_tensors(std::span<const NamedTensor> tensors, ReduceOp op);

/// Whether the tensors of a call lie on a device. Throws Error(kInvalidArgument) where some lie
/// elsewhere, or are of a type that this compression does not take there.
bool are_on_device(std::span<const NamedTensor> tensors, const Compression& compression);

}  // namespace elastic::codecs
