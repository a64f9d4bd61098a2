#include "coordinator/operation.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "collectives/kernels/reduce.hpp"

namespace elastic::coordinator {

namespace {

using collectives::Call;
using collectives::Kind;
using collectives::Payload;
using collectives::Section;

transport::Fingerprint fingerprint(Kind kind, DType dtype, ReduceOp op, std::size_t count,
                                   std::uint32_t detail = 0, std::size_t tensors = 1) {
  transport::Fingerprint print;
  print.kind = static_cast<std::uint8_t>(kind);
  print.dtype = static_cast<std::uint8_t>(dtype);
  print.redop = static_cast<std::uint8_t>(op);
  print.tensors = static_cast<std::uint8_t>(std::min<std::size_t>(tensors, 255));
  print.detail = detail;
  print.count = count;
  return print;
}

void copy(std::byte* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

/// A call over one run of elements.
Call simple_call(Kind kind, DType dtype, ReduceOp op, std::size_t count) {
  Call call;
  call.kind = kind;
  call.redop = op;
  call.sections = {Section{dtype, count, 0}};
  call.fingerprint = fingerprint(kind, dtype, op, count);
  return call;
}

}  // namespace

TensorList::TensorList(std::vector<TensorView> tensors) : tensors_(std::move(tensors)) {
  offsets_.reserve(tensors_.size());
  for (const TensorView& tensor : tensors_) {
    if (sections_.empty() || sections_.back().dtype != tensor.dtype) {
      constexpr std::size_t kAlign = collectives::kSectionAlignment;
      bytes_ = (bytes_ + kAlign - 1) / kAlign * kAlign;
      sections_.push_back(Section{tensor.dtype, 0, bytes_});
    }
    offsets_.push_back(bytes_);
    sections_.back().count += tensor.count;
    bytes_ += tensor.bytes();
    elements_ += tensor.count;
  }
}

std::uint32_t TensorList::shape_hash() const {
  std::uint32_t hash = 2166136261U;  // FNV-1a over (dtype, count)
  const auto mix = [&hash](std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) {
      hash = (hash ^ static_cast<std::uint32_t>((value >> shift) & 0xffU)) * 16777619U;
    }
  };
  for (const TensorView& tensor : tensors_) {
    mix(static_cast<std::uint64_t>(tensor.dtype));
    mix(tensor.count);
  }
  return hash;
}

void TensorList::pack_from(std::span<const ConstTensorView> inputs,
                           collectives::Buffer& buffer) const {
  buffer.resize(bytes_);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    copy(buffer.data() + offsets_[i], inputs[i].data, inputs[i].bytes());
  }
}

void TensorList::unpack(const collectives::Buffer& buffer, ReduceOp op,
                        std::uint32_t contributors) const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    auto* data = static_cast<std::byte*>(tensors_[i].data);
    copy(data, buffer.data() + offsets_[i], tensors_[i].bytes());
    if (op == ReduceOp::kAverage) {
      kernels::divide(tensors_[i].dtype, data, tensors_[i].count, contributors);
    }
  }
}

transport::Fingerprint allreduce_fingerprint(DType dtype, ReduceOp op, std::size_t count) {
  return fingerprint(Kind::kAllreduce, dtype, op, count);
}

AllreduceOperation::AllreduceOperation(std::vector<ConstTensorView> inputs,
                                       std::vector<TensorView> outputs, ReduceOp op)
    : given_inputs_(std::move(inputs)),
      given_outputs_(std::move(outputs)),
      inputs_(given_inputs_),
      outputs_(given_outputs_),
      op_(op) {
  const std::size_t tensors = inputs_.size();
  const DType dtype = tensors > 0 ? inputs_.front().dtype : DType::kU8;
  fingerprint_ = fingerprint(Kind::kAllreduce, dtype, op_, outputs_.elements(),
                             tensors > 1 ? outputs_.shape_hash() : 0, tensors);
}

void AllreduceOperation::make_direct(std::size_t least_bytes) {
  if (least_bytes == direct_from_) return;
  direct_from_ = least_bytes;
  inputs_.clear();
  direct_inputs_.clear();
  direct_outputs_.clear();
  packed_.clear();
  direct_.clear();
  std::vector<TensorView> packed;
  for (std::size_t i = 0; i < given_inputs_.size(); ++i) {
    const bool direct = given_inputs_[i].bytes() >= least_bytes;
    (direct ? direct_inputs_ : inputs_).push_back(given_inputs_[i]);
    (direct ? direct_outputs_ : packed).push_back(given_outputs_[i]);
    (direct ? direct_ : packed_).push_back(i);
  }
  outputs_ = TensorList(std::move(packed));
}

Call AllreduceOperation::call(const Members& /*members*/) {
  Call call;
  call.kind = Kind::kAllreduce;
  call.redop = op_;
  call.sections = outputs_.sections();
  call.fingerprint = fingerprint_;
  return call;
}
void AllreduceOperation::pack(const Members& /*members*/, Payload& payload) {
  outputs_.pack_from(inputs_, payload.data);
  for (std::size_t i = 0; i < direct_inputs_.size(); ++i) {
    const TensorView& output = direct_outputs_[i];
    payload.direct.push_back({output.dtype, output.count,
                              static_cast<const std::byte*>(direct_inputs_[i].data),
                              static_cast<std::byte*>(output.data)});
  }
}
void AllreduceOperation::unpack(const Members& members, const Payload& payload) {
  outputs_.unpack(payload.data, op_, static_cast<std::uint32_t>(members.size()));
  if (!payload.direct.empty()) return;
  std::size_t at = outputs_.bytes();
  for (const TensorView& output : direct_outputs_) {
    at = collectives::aligned(at);
    copy(static_cast<std::byte*>(output.data), payload.data.data() + at, output.bytes());
    at += output.bytes();
  }
}

std::vector<AllreduceOperation::Place> AllreduceOperation::places() const {
  std::vector<Place> places;
  for (std::size_t i = 0; i < outputs_.tensors().size(); ++i) {
    places.push_back({direct_.empty() ? i : packed_[i], outputs_.offsets()[i], false});
  }
  std::size_t at = outputs_.bytes();
  for (std::size_t i = 0; i < direct_.size(); ++i) {
    at = collectives::aligned(at);
    places.push_back({direct_[i], at, true});
    at += direct_outputs_[i].bytes();
  }
  return places;
}

BroadcastOperation::BroadcastOperation(TensorView data, int root, const Members& members)
    : data_(data),
      root_(members.incarnations[static_cast<std::size_t>(root)]),
      is_root_(root == members.rank) {}

Call BroadcastOperation::call(const Members& members) {
  Call call = simple_call(Kind::kBroadcast, data_.dtype, ReduceOp::kSum, data_.count);
  // Only reached while the root is a member: without it the view says that the operation is lost.
  call.root = std::max(members.rank_of(root_), 0);
  call.fingerprint.detail = static_cast<std::uint32_t>(call.root);
  return call;
}
void BroadcastOperation::pack(const Members& /*members*/, Payload& payload) {
  payload.data.resize(data_.bytes());
  if (is_root_) copy(payload.data.data(), data_.data, data_.bytes());
}
void BroadcastOperation::unpack(const Members& /*members*/, const Payload& payload) {
  if (!is_root_) copy(static_cast<std::byte*>(data_.data), payload.data.data(), data_.bytes());
}

Call BarrierOperation::call(const Members& /*members*/) {
  Call call;
  call.kind = Kind::kBarrier;
  call.fingerprint = fingerprint(Kind::kBarrier, DType::kU8, ReduceOp::kSum, 0);
  return call;
}
void BarrierOperation::pack(const Members& /*members*/, Payload& payload) {
  payload.data.resize(0);
}
void BarrierOperation::unpack(const Members& /*members*/, const Payload& /*payload*/) {}

AllgatherOperation::AllgatherOperation(ConstTensorView block, Take take)
    : block_(block), take_(std::move(take)) {}

Call AllgatherOperation::call(const Members& /*members*/) {
  Call call = simple_call(Kind::kAllgather, block_.dtype, ReduceOp::kSum, block_.count);
  call.fingerprint.count = 0;  // blocks may differ
  return call;
}
void AllgatherOperation::pack(const Members& /*members*/, Payload& payload) {
  payload.data.resize(block_.bytes());
  copy(payload.data.data(), block_.data, block_.bytes());
}
void AllgatherOperation::unpack(const Members& /*members*/, const Payload& payload) {
  take_(payload.data.bytes(), {payload.counts.begin(), payload.counts.end()});
}

ReduceScatterOperation::ReduceScatterOperation(ConstTensorView data, ReduceOp op, Take take)
    : data_(data), op_(op), take_(std::move(take)) {}

Call ReduceScatterOperation::call(const Members& /*members*/) {
  return simple_call(Kind::kReduceScatter, data_.dtype, op_, data_.count);
}
void ReduceScatterOperation::pack(const Members& /*members*/, Payload& payload) {
  payload.data.resize(data_.bytes());
  copy(payload.data.data(), data_.data, data_.bytes());
}
void ReduceScatterOperation::unpack(const Members& members, const Payload& payload) {
  const auto mine = payload.counts.begin() + members.rank;
  const std::size_t offset = std::accumulate(payload.counts.begin(), mine, std::size_t{0});
  const std::size_t bytes = static_cast<std::size_t>(*mine) * size_of(data_.dtype);
  std::vector<std::byte> part(payload.data.data(), payload.data.data() + bytes);
  if (op_ == ReduceOp::kAverage) {
    kernels::divide(data_.dtype, part.data(), static_cast<std::size_t>(*mine),
                    static_cast<std::uint32_t>(members.size()));
  }
  take_(part, offset);
}

Call MismatchOperation::call(const Members& /*members*/) {
  Call call;
  call.kind = Kind::kMismatch;
  call.error = error_;
  call.fingerprint = fingerprint(Kind::kMismatch, DType::kU8, ReduceOp::kSum, 0);
  return call;
}
void MismatchOperation::pack(const Members& /*members*/, Payload& payload) {
  payload.data.resize(0);
}
void MismatchOperation::unpack(const Members& /*members*/, const Payload& /*payload*/) {}

}  // namespace elastic::coordinator
