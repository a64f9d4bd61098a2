#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <string>

#include "base/dtype_names.hpp"
#include "elastic/scale.hpp"
#include "elastic/types.hpp"

namespace elastic {

/// The names of the reductions in messages, by their numbers.
inline constexpr std::array kReduceOpNames = {"sum",
                                              "average",
                                              "min",
                                              "max",
                                              "product",
                                              "bit and",
                                              "bit or",
                                              "bit xor",
                                              "logical and",
                                              "logical or",
                                              "logical xor",
                                              "adasum",
                                              "hierarchical adasum"};
static_assert(kReduceOpNames.size() == kReduceOps.size());

constexpr const char* reduce_op_name(ReduceOp op) {
  const auto number = static_cast<std::size_t>(op);
  return number < kReduceOpNames.size() ? kReduceOpNames[number] : "unknown";
}

constexpr bool is_bitwise(ReduceOp op) {
  return op == ReduceOp::kBitAnd || op == ReduceOp::kBitOr || op == ReduceOp::kBitXor;
}
constexpr bool is_logical(ReduceOp op) {
  return op == ReduceOp::kLogicalAnd || op == ReduceOp::kLogicalOr || op == ReduceOp::kLogicalXor;
}
constexpr bool is_adasum(ReduceOp op) {
  return op == ReduceOp::kAdasum || op == ReduceOp::kHierarchicalAdasum;
}
/// Whether an element of the result depends on the same element of the contributions alone, so that
/// any part of a tensor can be reduced by itself.
constexpr bool is_elementwise(ReduceOp op) {
  return !is_adasum(op);
}

constexpr bool is_float(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF32 ||
         dtype == DType::kF64;
}

/// Why elements of `dtype` are not combined by `op`, and what to take instead; empty if they are.
inline std::string refusal(ReduceOp op, DType dtype) {
  if (op == ReduceOp::kAverage && dtype == DType::kBool) {
    return "bools have no average; take the maximum for \"or\", the minimum for \"and\", or "
           "numbers";
  }
  if (is_bitwise(op) && is_float(dtype)) {
    return std::string(dtype_name(dtype)) + " has no " + reduce_op_name(op) +
           ": take whole numbers, or a logical operation for whether elements are not 0";
  }
  if (is_adasum(op) && !is_float(dtype)) {
    return std::string("Adasum takes f16, bf16, f32 and f64, and this is ") + dtype_name(dtype);
  }
  return {};
}

constexpr bool scales_nothing(const Scale& scale) {
  return scale.before() == 1 && scale.after() == 1;
}

/// Why elements of `dtype` are not scaled so; empty if they are.
inline std::string refusal(const Scale& scale, DType dtype) {
  if (!std::isfinite(scale.before()) || !std::isfinite(scale.after())) {
    return "a factor of the scale is not finite";
  }
  if (!scales_nothing(scale) && !is_float(dtype)) {
    return std::string(dtype_name(dtype)) +
           " is not scaled: whole numbers would be cut off without a word; scale floats, or divide "
           "the result yourself";
  }
  return {};
}

}  // namespace elastic
