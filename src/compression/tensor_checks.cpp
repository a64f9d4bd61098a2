#include "compression/tensor_checks.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/dtype_names.hpp"
#include "elastic/error.hpp"

namespace elastic::codecs {

void invalid(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, "GradientCompressor: " + message);
}

namespace {

constexpr const char* kReproducibleConflict =
    "; BatchPolicy::kReproducible needs sums of whole numbers and their maximum, and cannot be "
    "combined with compression: take the compression none, or the policy kFixedTotal";

bool is_on_device(const NamedTensor& tensor) {
  return tensor.data.device.kind != Device::Kind::kHost;
}

void check(const NamedTensor& tensor) {
  const std::string name = "tensor '" + std::string(tensor.name) + "'";
  const std::string type = dtype_name(tensor.data.dtype);
  if (tensor.name.empty()) invalid("a tensor has no name; its residual is kept under one");
  if (is_on_device(tensor)) {
    if (tensor.data.dtype != DType::kF32 && tensor.data.dtype != DType::kF64) {
      invalid(name + " is of " + type + ", not of floats (f32 or f64), as all on a device must be");
    }
  } else if (tensor.data.dtype != DType::kF32) {
    invalid(name + " is of " + type + ", not of floats (f32), as all in host memory must be" +
            (tensor.data.dtype == DType::kI64 ? kReproducibleConflict : ""));
  }
  if (tensor.data.data == nullptr && tensor.data.count > 0) invalid(name + " is at a null pointer");
  if (tensor.data.count >> 32U != 0) invalid(name + " has more than 2^32 - 1 elements; split it");
}

/// For kinds that exchange encoded blocks, which are of f32.
void check_are_f32(std::span<const NamedTensor> tensors) {
  for (const NamedTensor& tensor : tensors) {
    if (tensor.data.dtype == DType::kF32) continue;
    invalid("tensor '" + std::string(tensor.name) +
            "' is of f64, and int8 and top_k take f32: take f16 or bf16, or f32 tensors");
  }
}

}  // namespace

void check_tensors(std::span<const NamedTensor> tensors, ReduceOp op) {
  if (op != ReduceOp::kSum && op != ReduceOp::kAverage) {
    invalid(std::string("the op is neither kSum nor kAverage; no others can be made of compressed "
                        "gradients") +
            (op == ReduceOp::kMax ? kReproducibleConflict : ""));
  }
  std::vector<std::string_view> names;
  for (const NamedTensor& tensor : tensors) {
    check(tensor);
    names.push_back(tensor.name);
  }
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) invalid("two tensors are called '" + std::string(*twice) + "'");
}

bool are_on_device(std::span<const NamedTensor> tensors, const Compression& compression) {
  const auto device = std::ranges::find_if(tensors, is_on_device);
  if (device == tensors.end()) return false;
  const std::string name = "tensor '" + std::string(device->name) + "' lies on a CUDA device";
  const auto host = std::ranges::find_if_not(tensors, is_on_device);
  if (host != tensors.end()) {
    invalid(name + ", and tensor '" + std::string(host->name) +
            "' in host memory: give all of a call where the same device has them, or in host "
            "memory");
  }
  if (compression.kind == CompressionKind::kTwoBit) {
    invalid(name +
            ", where all kinds but two_bit compress: take another, or copy the tensors to host "
            "memory before the call");
  }
  if (compression.kind == CompressionKind::kInt8 || compression.kind == CompressionKind::kTopK) {
    check_are_f32(tensors);
  }
  return true;
}

}  // namespace elastic::codecs
