#pragma once

#include "collectives/backend/nccl/nccl_api.hpp"
#include "elastic/types.hpp"

namespace elastic::collectives::nccl {

/// NCCL has no 16-bit integers: it can move them as halves, but cannot reduce them.
constexpr bool can_reduce(DType dtype) {
  return dtype != DType::kI16 && dtype != DType::kU16;
}

/// NCCL has neither bitwise nor logical operations, and no Adasum.
constexpr bool can_reduce(ReduceOp op) {
  return op <= ReduceOp::kProduct;
}

inline ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kI16:
    case DType::kU16:
      return ncclFloat16;
    case DType::kBF16:
      return ncclBfloat16;
    case DType::kF32:
      return ncclFloat32;
    case DType::kF64:
      return ncclFloat64;
    case DType::kI8:
      return ncclInt8;
    case DType::kU8:
    case DType::kBool:
      return ncclUint8;
    case DType::kI32:
      return ncclInt32;
    case DType::kI64:
      return ncclInt64;
    case DType::kU32:
      return ncclUint32;
    case DType::kU64:
      return ncclUint64;
  }
  return ncclUint8;
}

/// An average is summed here and divided later, because NCCL's average differs in bits from the
/// host's. NCCL has no bool: as bytes, "or" is the maximum and "and" the minimum.
inline ncclRedOp_t op_of(DType dtype, ReduceOp op) {
  if (dtype == DType::kBool) {
    return op == ReduceOp::kProduct || op == ReduceOp::kMin ? ncclMin : ncclMax;
  }
  switch (op) {
    case ReduceOp::kMin:
      return ncclMin;
    case ReduceOp::kMax:
      return ncclMax;
    case ReduceOp::kProduct:
      return ncclProd;
    default:
      return ncclSum;
  }
}

}  // namespace elastic::collectives::nccl
