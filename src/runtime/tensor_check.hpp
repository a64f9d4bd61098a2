#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "collectives/device/placement.hpp"
#include "elastic/compression.hpp"
#include "elastic/scale.hpp"
#include "elastic/types.hpp"

namespace elastic::runtime {

inline bool any_on_device(std::span<const TensorView> tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const TensorView& tensor) { return device::on_device(tensor); });
}

/// Throws Error(kInvalidArgument) for a tensor without memory, or with more bytes than can exist.
/// The message begins with `call` and with `which` of its tensors it is.
void check(const ConstTensorView& tensor, const char* call, const char* which = "tensor");
/// As `check`, for each tensor of a group and for their sum; also throws where two of them overlap.
void check_group(std::span<const TensorView> tensors, const char* call);

/// Throws Error(kInvalidArgument) for an invalid reduction, and for one that `dtype` does not have.
void check(ReduceOp op, DType dtype, const char* call);
void check(ReduceOp op, std::span<const TensorView> tensors, const char* call);
/// Throws Error(kInvalidArgument) for a scale that `dtype` does not have.
void check(const Scale& scale, DType dtype, const char* call);
void check(const Scale& scale, std::span<const TensorView> tensors, const char* call);
/// Throws Error(kInvalidArgument) for a reduction of which no rank can have a part.
void check_elementwise(ReduceOp op, const char* call);

/// Throws Error(kInvalidArgument) if `input` and `output`, which have the same size, overlap
/// without being the same memory.
void check_overlap(const ConstTensorView& input, const ConstTensorView& output, const char* call);

/// All of this for a reduction from `input` to `output`, which must have the same shape.
void check_reduction(const ConstTensorView& input, const TensorView& output, ReduceOp op,
                     const char* call);

/// Throws Error(kInvalidArgument) if `input` and `output` lie on different devices, or only one of
/// them in host memory.
void check_same_device(const ConstTensorView& input, const ConstTensorView& output,
                       const char* call);

/// As `check`, and throws for a tensor outside of host memory, on behalf of `what`.
void check_host(const ConstTensorView& tensor, const char* what);

/// Throws Error(kInvalidArgument) for indices at a null pointer.
void check_indices(std::span<const std::int64_t> indices, const std::string& call);

/// As `check`, and throws for a tensor that cannot be cast to its wire dtype.
void check(const CastTensor& tensor, ReduceOp op);

/// Throws Error(kInvalidArgument) for a stream without a tensor on a device.
void check_no_stream(const CudaStream& stream);

}  // namespace elastic::runtime
