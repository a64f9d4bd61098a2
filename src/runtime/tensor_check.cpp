#include "runtime/tensor_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype_names.hpp"
#include "base/reduce_ops.hpp"
#include "base/tensor_bytes.hpp"
#include "elastic/error.hpp"

namespace elastic::runtime {

namespace {

[[noreturn]] void invalid(const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, what);
}

bool is_possible(const Device& device) {
  return device.kind == Device::Kind::kCuda ||
         (device.kind == Device::Kind::kHost && device.index == 0);
}

std::string text(const Device& device) {
  if (device.kind == Device::Kind::kHost) {
    return "host memory has the device index 0, and this has " + std::to_string(device.index);
  }
  return "there is no kind of device " + std::to_string(static_cast<int>(device.kind)) +
         "; there are kHost and kCuda";
}

/// Throws if two tensors of a group overlap: each is input and output, so the result of one could
/// overwrite the unread input of another. Devices and the host share one address space.
void check_disjoint(std::span<const TensorView> tensors, const char* call) {
  const auto begin = [&](std::size_t i) {
    return reinterpret_cast<std::uintptr_t>(tensors[i].data);
  };
  const auto bytes = [&](std::size_t i) { return ConstTensorView(tensors[i]).bytes(); };
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].count > 0) order.push_back(i);
  }
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(begin(i), i); });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const std::size_t one = order[i - 1];
    const std::size_t other = order[i];
    if (begin(other) - begin(one) >= bytes(one)) continue;
    invalid(std::string(call) + ": tensors " + std::to_string(std::min(one, other)) + " and " +
            std::to_string(std::max(one, other)) +
            " overlap in memory: give each tensor of a group memory of its own");
  }
}

void check_exists(ReduceOp op, const char* call) {
  if (op <= kReduceOps.back()) return;
  invalid(std::string(call) + ": there is no reduction " + std::to_string(static_cast<int>(op)));
}

}  // namespace

void check(const ConstTensorView& tensor, const char* call, const char* which) {
  const std::size_t element = size_of(tensor.dtype);
  const bool possible = element > 0 && can_exist(tensor.count, element);
  const bool placed = is_possible(tensor.device);
  if (possible && placed && (tensor.data != nullptr || tensor.count == 0)) return;
  const std::string what = std::string(call) + ", " + which + ": ";
  if (!placed) invalid(what + text(tensor.device));
  if (element == 0) {
    invalid(what + "there is no dtype " + std::to_string(static_cast<int>(tensor.dtype)));
  }
  const std::string size =
      std::to_string(tensor.count) + " elements of " + std::to_string(element) + " bytes";
  if (!possible) invalid(what + size + " are more than any memory has; the count is wrong");
  invalid(what + size + " lie at a null pointer");
}

void check_group(std::span<const TensorView> tensors, const char* call) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const ConstTensorView tensor = tensors[i];
    const std::size_t element = size_of(tensor.dtype);
    if (tensor.data == nullptr || !is_possible(tensor.device) || element == 0 ||
        !can_exist(tensor.count, element)) {
      check(tensor, call, ("tensor " + std::to_string(i)).c_str());
    }
    total += tensor.bytes();
    if (total <= kMostAddressableBytes) continue;
    invalid(std::string(call) + ": tensors 0 to " + std::to_string(i) +
            " have more bytes together than any memory has; the count of one of them is wrong");
  }
  check_disjoint(tensors, call);
}

void check(ReduceOp op, DType dtype, const char* call) {
  check_exists(op, call);
  if (const std::string why = refusal(op, dtype); !why.empty()) {
    invalid(std::string(call) + ": " + why);
  }
}

void check(ReduceOp op, std::span<const TensorView> tensors, const char* call) {
  check_exists(op, call);  // for an empty group
  for (const TensorView& tensor : tensors) check(op, tensor.dtype, call);
}

void check(const Scale& scale, DType dtype, const char* call) {
  if (const std::string why = refusal(scale, dtype); !why.empty()) {
    invalid(std::string(call) + ": " + why);
  }
}

void check(const Scale& scale, std::span<const TensorView> tensors, const char* call) {
  for (const TensorView& tensor : tensors) check(scale, tensor.dtype, call);
}

void check_elementwise(ReduceOp op, const char* call) {
  if (is_elementwise(op)) return;
  invalid(std::string(call) + ": " + (op == ReduceOp::kAdasum ? "kAdasum" : "kHierarchicalAdasum") +
          " combines whole tensors, and so is for allreduces only");
}

void check_overlap(const ConstTensorView& input, const ConstTensorView& output, const char* call) {
  const auto in = reinterpret_cast<std::uintptr_t>(input.data);
  const auto out = reinterpret_cast<std::uintptr_t>(output.data);
  const std::size_t distance = in < out ? out - in : in - out;
  if (distance == 0 || distance >= input.bytes()) return;
  invalid(std::string(call) + ": input and output of " + std::to_string(input.bytes()) +
          " bytes overlap, " + std::to_string(distance) +
          " bytes apart: give the same memory for both, or memory of its own for each");
}

void check_reduction(const ConstTensorView& input, const TensorView& output, ReduceOp op,
                     const char* call) {
  check(input, call, "input");
  check(output, call, "output");
  check(op, input.dtype, call);
  if (input.count != output.count || input.dtype != output.dtype) {
    throw Error(ErrorCode::kInvalidArgument,
                std::string(call) + ": the input is " + std::to_string(input.count) + " " +
                    dtype_name(input.dtype) + " and the output " + std::to_string(output.count) +
                    " " + dtype_name(output.dtype) + "; they must be alike");
  }
  check_overlap(input, output, call);
}

void check_same_device(const ConstTensorView& input, const ConstTensorView& output,
                       const char* call) {
  if (input.device.kind == output.device.kind && input.device.index == output.device.index) return;
  invalid(std::string(call) +
          ": input and output lie on different devices, or one of them in host memory; they must "
          "lie alike");
}

void check_host(const ConstTensorView& tensor, const char* what) {
  check(tensor, what);
  if (!device::on_device(tensor)) return;
  throw Error(ErrorCode::kInvalidArgument,
              std::string(what) +
                  " takes tensors in host memory only, and was given one on CUDA "
                  "device " +
                  std::to_string(tensor.device.index) + ": copy it to the host before the call");
}

void check_indices(std::span<const std::int64_t> indices, const std::string& call) {
  if (indices.data() != nullptr || indices.empty()) return;
  invalid(call + ": " + std::to_string(indices.size()) + " indices lie at a null pointer");
}

void check(const CastTensor& tensor, ReduceOp op) {
  check(tensor.data, "cast_allreduce");
  const DType dtype = tensor.data.dtype;
  const std::string who = "a tensor of " + std::to_string(tensor.data.count) + " elements ";
  int exponent = 0;
  const bool is_power = std::frexp(tensor.scale, &exponent) == 0.5F;
  if (tensor.wire_dtype == dtype) {
    if (tensor.scale == 1) return;
    invalid(who + "has a scale, and travels as it is: leave the scale out");
  }
  if ((dtype != DType::kF32 && dtype != DType::kF64) ||
      (tensor.wire_dtype != DType::kF16 && tensor.wire_dtype != DType::kBF16)) {
    invalid(who + "cannot be cast so: f32 and f64 are, to f16 or bf16");
  }
  if (!is_power || tensor.scale < 0x1p-24F || tensor.scale > 0x1p24F) {
    invalid(who + "is to be cast with a scale that is no power of two from 2^-24 to 2^24");
  }
  if (op != ReduceOp::kSum && op != ReduceOp::kAverage) {
    invalid("tensors are cast for kSum and kAverage only");
  }
}

void check_no_stream(const CudaStream& stream) {
  if (stream.handle == nullptr) return;
  throw Error(ErrorCode::kInvalidArgument,
              "a CUDA stream was given, and no tensor on a CUDA device: leave the stream out, or "
              "say where the tensor lies (elastic::cuda_view)");
}

}  // namespace elastic::runtime
