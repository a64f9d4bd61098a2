#include "benchmarks/element_names.hpp"

namespace elastic::bench {

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return "half";
    case DType::kBF16:
      return "bfloat16";
    case DType::kF32:
      return "float";
    case DType::kF64:
      return "double";
    case DType::kI8:
      return "int8";
    case DType::kU8:
      return "uint8";
    case DType::kI32:
      return "int32";
    case DType::kI64:
      return "int64";
  }
  return "unknown";
}

const char* name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kAverage:
      return "avg";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kProduct:
      return "prod";
  }
  return "unknown";
}

std::vector<DType> all_dtypes() {
  return {DType::kF16, DType::kBF16, DType::kF32, DType::kF64,
          DType::kI8,  DType::kU8,   DType::kI32, DType::kI64};
}

std::vector<ReduceOp> all_ops() {
  return {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct};
}

}  // namespace elastic::bench
