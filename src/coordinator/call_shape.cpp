#include "coordinator/call_shape.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/hash.hpp"

namespace elastic::coordinator {

using collectives::Call;
using collectives::Kind;

transport::Fingerprint fingerprint(Kind kind, DType dtype, ReduceOp op, std::size_t count,
                                   std::uint32_t detail, std::size_t tensors) {
  transport::Fingerprint print;
  print.kind = static_cast<std::uint8_t>(kind);
  print.dtype = static_cast<std::uint8_t>(dtype);
  print.redop = static_cast<std::uint8_t>(op);
  print.tensors = static_cast<std::uint8_t>(std::min<std::size_t>(tensors, 255));
  print.detail = detail;
  print.count = count;
  return print;
}

/// Blocks may differ in count.
transport::Fingerprint allgather_fingerprint(DType dtype, std::uint32_t row) {
  return fingerprint(Kind::kAllgather, dtype, ReduceOp::kSum, 0, row);
}

transport::Fingerprint alltoall_fingerprint(DType dtype, std::size_t count, std::uint32_t row) {
  transport::Fingerprint print = fingerprint(Kind::kAlltoall, dtype, ReduceOp::kSum, count, row);
  print.redop = 0;
  return print;
}

/// Blocks may differ in count.
transport::Fingerprint gather_fingerprint(DType dtype, std::uint32_t row, std::uint32_t root) {
  return fingerprint(Kind::kGather, dtype, ReduceOp::kSum, row, root);
}

Call simple_call(Kind kind, DType dtype, ReduceOp op, std::size_t count) {
  Call call;
  call.kind = kind;
  call.redop = op;
  call.sections = {collectives::Section{dtype, count, 0}};
  call.fingerprint = fingerprint(kind, dtype, op, count);
  return call;
}

Call impossible_call(std::string error) {
  Call call;
  call.kind = Kind::kMismatch;
  call.error = std::move(error);
  call.fingerprint = fingerprint(Kind::kMismatch, DType::kU8, ReduceOp::kSum, 0);
  return call;
}

std::uint32_t hash_of_row(RowShape row) {
  if (row.empty()) return 0;
  return std::max<std::uint32_t>(static_cast<std::uint32_t>(hash_of(std::as_bytes(row))), 1);
}

}  // namespace elastic::coordinator
