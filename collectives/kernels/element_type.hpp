#pragma once

#include <cstdint>

#include "elastic/half.hpp"
#include "elastic/types.hpp"

namespace elastic::kernels {

/// Calls `function` with an element of the type that `dtype` stands for.
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
      return function(std::uint8_t{});
    case DType::kI32:
      return function(std::int32_t{});
    case DType::kI64:
      break;
  }
  return function(std::int64_t{});
}

}  // namespace elastic::kernels
