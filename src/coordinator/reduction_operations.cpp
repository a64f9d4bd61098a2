#include "coordinator/reduction_operations.hpp"

#include <cstdint>
#include <cstring>
#include <utility>

#include "base/reduce_ops.hpp"
#include "collectives/kernels/neutral.hpp"
#include "collectives/kernels/reduce.hpp"

namespace elastic::coordinator {

using collectives::Call;
using collectives::Kind;
using collectives::Payload;

namespace {

void pack_whole(const ConstTensorView& tensor, Payload& payload) {
  payload.data.resize(tensor.bytes());
  if (tensor.bytes() > 0) std::memcpy(payload.data.data(), tensor.data, tensor.bytes());
}

/// Copies the result of `contributors` members.
void unpack_whole(const Payload& payload, ReduceOp op, int contributors, const TensorView& out) {
  if (out.bytes() == 0) return;
  auto* const data = static_cast<std::byte*>(out.data);
  std::memcpy(data, payload.data.data(), out.bytes());
  if (op == ReduceOp::kAverage) {
    kernels::divide(out.dtype, data, out.count, static_cast<std::uint32_t>(contributors));
  }
}

}  // namespace

ReduceOperation::ReduceOperation(ConstTensorView in, TensorView out, ReduceOp op, CallRoot root)
    : RootedOperation(std::move(root)), in_(in), out_(out), op_(op) {}

Call ReduceOperation::call(const Members& members) {
  return with_root(simple_call(Kind::kReduce, in_.dtype, op_, in_.count), members);
}
void ReduceOperation::pack(const Members& /*members*/, Payload& payload) {
  pack_whole(in_, payload);
}
void ReduceOperation::unpack(const Members& members, const Payload& payload) {
  if (root().is_this_worker()) unpack_whole(payload, op_, members.size(), out_);
}

ScanOperation::ScanOperation(ConstTensorView in, TensorView out, ReduceOp op, bool exclusive)
    : in_(in), out_(out), op_(op), exclusive_(exclusive) {}

Call ScanOperation::call(const Members& /*members*/) {
  Call call = simple_call(Kind::kScan, in_.dtype, op_, in_.count);
  call.exclusive = exclusive_;
  if (exclusive_) call.fingerprint.detail = transport::Fingerprint::kExclusive;
  return call;
}
void ScanOperation::pack(const Members& /*members*/, Payload& payload) {
  pack_whole(in_, payload);
}
/// A lone contribution is combined with the neutral element: a logical result is 0 or 1.
void ScanOperation::unpack(const Members& members, const Payload& payload) {
  const int contributors = members.rank + (exclusive_ ? 0 : 1);
  const bool as_it_is = contributors > 1 || (contributors == 1 && !is_logical(op_));
  if (as_it_is) return unpack_whole(payload, op_, contributors, out_);
  auto* const data = static_cast<std::byte*>(out_.data);
  kernels::fill_neutral(out_.dtype, op_, data, out_.count);
  if (contributors == 1 && out_.count > 0) {
    kernels::reduce(out_.dtype, op_)(data, data, payload.data.data(), out_.count);
  }
}

}  // namespace elastic::coordinator
