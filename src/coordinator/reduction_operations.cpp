#include "coordinator/reduction_operations.hpp"

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "base/reduce_ops.hpp"
#include "collectives/backend/own_result.hpp"
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

}  // namespace

void ReduceOperation::take_whole(const Payload& payload, ReduceOp op, int contributors,
                                 const TensorView& out) {
  if (out.bytes() == 0) return;
  auto* const data = static_cast<std::byte*>(out.data);
  const std::byte* const result = payload.result().data();
  if (result != data) std::memcpy(data, result, out.bytes());
  if (op == ReduceOp::kAverage) {
    kernels::divide(out.dtype, data, out.count, static_cast<std::uint32_t>(contributors));
  }
}

ReduceOperation::ReduceOperation(ConstTensorView in, TensorView out, ReduceOp op, CallRoot root,
                                 Room room)
    : RootedOperation(std::move(root)), in_(in), out_(out), op_(op), room_(room) {}

Call ReduceOperation::call(const Members& members) {
  return with_root(simple_call(Kind::kReduce, in_.dtype, op_, in_.count), members);
}
void ReduceOperation::pack(const Members& /*members*/, Payload& payload) {
  if (in_.bytes() == 0 || in_.bytes() < lent_from_) return pack_whole(in_, payload);
  payload.lent = {{static_cast<const std::byte*>(in_.data), in_.bytes()}, room_};
}
void ReduceOperation::unpack(const Members& members, const Payload& payload) {
  if (root().is_this_worker()) take_whole(payload, op_, members.size(), out_);
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
void ScanOperation::unpack(const Members& members, const Payload& payload) {
  if (out_.count == 0) return;
  const int contributors = members.rank + (exclusive_ ? 0 : 1);
  auto* const data = static_cast<std::byte*>(out_.data);
  if (contributors == 0) return kernels::fill_neutral(out_.dtype, op_, data, out_.count);
  collectives::own_scan(payload, contributors, out_.dtype, op_, out_.count, data);
  if (op_ == ReduceOp::kAverage) {
    kernels::divide(out_.dtype, data, out_.count, static_cast<std::uint32_t>(contributors));
  }
  if (contributors == 1 && is_logical(op_)) make_logical(data);
}

/// A lone contribution has been combined with nothing, and yet a logical result is 0 or 1.
void ScanOperation::make_logical(std::byte* data) const {
  std::vector<std::byte> neutral(out_.bytes());
  kernels::fill_neutral(out_.dtype, op_, neutral.data(), out_.count);
  kernels::reduce(out_.dtype, op_)(data, neutral.data(), data, out_.count);
}

}  // namespace elastic::coordinator
