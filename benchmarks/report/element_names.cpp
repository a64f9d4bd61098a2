#include "benchmarks/report/element_names.hpp"

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
    case DType::kU32:
      return "uint32";
    case DType::kU64:
      return "uint64";
    case DType::kI16:
      return "int16";
    case DType::kU16:
      return "uint16";
    case DType::kBool:
      return "bool";
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
    default:
      break;  // not one of nccl-tests'
  }
  return "unknown";
}

std::vector<DType> all_dtypes() {
  return {kDTypes.begin(), kDTypes.end()};
}

std::vector<ReduceOp> all_ops() {
  return {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct};
}

}  // namespace elastic::bench
