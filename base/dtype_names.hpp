#pragma once

#include <array>
#include <cstddef>

#include "elastic/types.hpp"

namespace elastic {

/// The names of the element types in messages, by their numbers.
inline constexpr std::array kDTypeNames = {"f16", "bf16", "f32", "f64", "i8",  "u8",  "i32",
                                           "i64", "u32",  "u64", "i16", "u16", "bool"};
static_assert(kDTypeNames.size() == kDTypes.size());

constexpr const char* dtype_name(DType dtype) {
  const auto number = static_cast<std::size_t>(dtype);
  return number < kDTypeNames.size() ? kDTypeNames[number] : "unknown";
}

}  // namespace elastic
