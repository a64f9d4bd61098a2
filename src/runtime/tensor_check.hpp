#pragma once

#include <algorithm>
#include <span>

#include "collectives/device/placement.hpp"
#include "elastic/cuda_stream.hpp"
#include "elastic/narrow_tensor.hpp"
#include "elastic/types.hpp"

namespace elastic::runtime {

inline bool any_on_device(std::span<const TensorView> tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const TensorView& tensor) { return device::on_device(tensor); });
}

/// Throws Error(kInvalidArgument) for a tensor that is nowhere, or has more bytes than can be. The
/// message begins with `call` and `which` of its tensors it is.
void check(const ConstTensorView& tensor, const char* call, const char* which = "tensor");
/// The same for each of a group, and for all together.
void check_group(std::span<const TensorView> tensors, const char* call);

/// Throws Error(kInvalidArgument) for a number that is no reduction, and for the average of bools.
void check(ReduceOp op, DType dtype, const char* call);
void check(ReduceOp op, std::span<const TensorView> tensors, const char* call);

/// Throws Error(kInvalidArgument) where `input` and `output`, which have the same bytes, overlap
/// and are not the same memory.
void check_apart(const ConstTensorView& input, const ConstTensorView& output, const char* call);

/// And for one that is not in host memory: for `what`, which takes no others.
void check_host(const ConstTensorView& tensor, const char* what);

/// And for one that cannot be narrowed as is asked for.
void check(const NarrowTensor& tensor, ReduceOp op);

/// Throws Error(kInvalidArgument) for a stream that was given although no tensor is on a device.
void check_no_stream(const CudaStream& stream);

}  // namespace elastic::runtime
