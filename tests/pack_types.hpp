#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "base/dtype_names.hpp"
#include "elastic/types.hpp"

namespace elastic::gpu {

/// The types of a tensor and of the bucket that it is packed into.
struct PackTypes {
  DType tensor;
  DType bucket;
};

/// All that there are kernels for.
inline const std::vector<PackTypes> kPackTypes = {
    {DType::kF16, DType::kF16}, {DType::kBF16, DType::kBF16}, {DType::kF32, DType::kF32},
    {DType::kF64, DType::kF64}, {DType::kI8, DType::kI8},     {DType::kU8, DType::kU8},
    {DType::kI32, DType::kI32}, {DType::kI64, DType::kI64},   {DType::kU32, DType::kU32},
    {DType::kU64, DType::kU64}, {DType::kI16, DType::kI16},   {DType::kU16, DType::kU16},
    {DType::kF32, DType::kF16}, {DType::kF32, DType::kBF16},  {DType::kF64, DType::kF16},
    {DType::kF64, DType::kBF16}};

/// The types' part of a test's name.
inline std::string name_of(const PackTypes& types) {
  return std::string(dtype_name(types.tensor)) + "_as_" + dtype_name(types.bucket);
}
inline void PrintTo(const PackTypes& types, std::ostream* out) {  // NOLINT: GoogleTest's name
  *out << name_of(types);
}

}  // namespace elastic::gpu
