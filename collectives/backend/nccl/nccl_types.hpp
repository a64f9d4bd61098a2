#pragma once

#include "collectives/backend/nccl/nccl_api.hpp"
#include "elastic/types.hpp"

namespace elastic::collectives::nccl {

inline ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kF16:
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
      return ncclUint8;
    case DType::kI32:
      return ncclInt32;
    case DType::kI64:
      return ncclInt64;
  }
  return ncclUint8;
}

/// An average is summed: NCCL's own has other bits than the host's.
inline ncclRedOp_t op_of(ReduceOp op) {
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
