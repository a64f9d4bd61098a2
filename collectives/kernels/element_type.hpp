#pragma once

#include <cstdint>

#include "elastic/half.hpp"
#include "elastic/types.hpp"

namespace elastic::kernels {

/// Calls `function` with an element of the type that `dtype` stands for; for a bool it is the byte
/// that the kernels compute with.
template <typename Function>
auto with_element_of(DType dtype, Function function) {
  switch (dtype) {
    case DType::kF16:
      return function(float16{});
    case DType::kBF16:
      return function(bfloat16{});
    case DType::kF32:
      return function(float{});
    case DType::kF64:
      return function(double{});
    case DType::kI8:
      return function(std::int8_t{});
    case DType::kU8:
    case DType::kBool:
      return function(std::uint8_t{});
    case DType::kI32:
      return function(std::int32_t{});
    case DType::kU32:
      return function(std::uint32_t{});
    case DType::kU64:
      return function(std::uint64_t{});
    case DType::kI16:
      return function(std::int16_t{});
    case DType::kU16:
      return function(std::uint16_t{});
    case DType::kI64:
      break;
  }
  return function(std::int64_t{});
}

}  // namespace elastic::kernels
