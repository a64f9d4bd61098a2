#include "coordinator/operation.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>

#include "base/reduce_ops.hpp"
#include "collectives/backend/own_result.hpp"
#include "collectives/kernels/cast.hpp"
#include "collectives/kernels/reduce.hpp"
#include "collectives/kernels/scale.hpp"

namespace elastic::coordinator {

namespace {

using collectives::Call;
using collectives::Kind;
using collectives::Payload;
using collectives::Section;
using collectives::Wire;

void copy(std::byte* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

/// Copies the input to the payload, or lends it.
void pack_whole(const ConstTensorView& tensor, std::size_t lent_from, Payload& payload) {
  const auto* const data = static_cast<const std::byte*>(tensor.data);
  if (tensor.bytes() >= lent_from && tensor.bytes() > 0) {
    payload.lent.input = {data, tensor.bytes()};
    return;
  }
  payload.data.resize(tensor.bytes());
  copy(payload.data.data(), data, tensor.bytes());
}

std::vector<Wire> as_they_are(const std::vector<TensorView>& tensors) {
  std::vector<Wire> wires;
  for (const TensorView& tensor : tensors) wires.push_back({tensor.dtype});
  return wires;
}

}  // namespace

TensorList::TensorList(std::vector<TensorView> tensors, std::vector<Wire> wires, ReduceOp op)
    : tensors_(std::move(tensors)), wires_(std::move(wires)) {
  offsets_.reserve(tensors_.size());
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const DType dtype = wires_[i].dtype;
    if (sections_.empty() || sections_.back().dtype != dtype || !is_elementwise(op)) {
      constexpr std::size_t kAlign = collectives::kSectionAlignment;
      bytes_ = (bytes_ + kAlign - 1) / kAlign * kAlign;
      sections_.push_back(Section{dtype, 0, bytes_});
    }
    offsets_.push_back(bytes_);
    sections_.back().count += tensors_[i].count;
    bytes_ += tensors_[i].count * size_of(dtype);
    elements_ += tensors_[i].count;
  }
}

bool TensorList::has_cast() const {
  bool any = false;
  for (std::size_t i = 0; i < tensors_.size(); ++i) any = any || is_cast(i);
  return any;
}

std::uint32_t TensorList::shape_hash() const {
  std::uint32_t hash = 2166136261U;  // FNV-1a over (dtype, count), and scales
  const auto mix = [&hash](std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) {
      hash = (hash ^ static_cast<std::uint32_t>((value >> shift) & 0xffU)) * 16777619U;
    }
  };
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    mix(static_cast<std::uint64_t>(wires_[i].dtype));
    mix(tensors_[i].count);
    if (is_cast(i)) mix(std::bit_cast<std::uint32_t>(wires_[i].scale));
  }
  return hash;
}

void TensorList::pack_from(std::span<const ConstTensorView> inputs, double factor,
                           collectives::Buffer& buffer) const {
  buffer.resize(bytes_);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::byte* const to = buffer.data() + offsets_[i];
    if (is_cast(i)) {
      kernels::cast(inputs[i].dtype, static_cast<const std::byte*>(inputs[i].data), inputs[i].count,
                    double{wires_[i].scale}, wires_[i].dtype, to);
    } else if (factor != 1) {
      kernels::scale(inputs[i].dtype, to, static_cast<const std::byte*>(inputs[i].data),
                     inputs[i].count, factor);
    } else {
      copy(to, inputs[i].data, inputs[i].bytes());
    }
  }
}

void TensorList::unpack(const collectives::Buffer& buffer, ReduceOp op, std::uint32_t contributors,
                        double factor) const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    auto* data = static_cast<std::byte*>(tensors_[i].data);
    const std::byte* const from = buffer.data() + offsets_[i];
    if (is_cast(i)) {
      kernels::widen(wires_[i].dtype, from, tensors_[i].count, 1 / double{wires_[i].scale},
                     op == ReduceOp::kAverage ? contributors : 1, tensors_[i].dtype, data);
      continue;
    }
    if (factor != 1) {
      kernels::scale(tensors_[i].dtype, data, from, tensors_[i].count, factor,
                     op == ReduceOp::kAverage ? contributors : 1);
      continue;
    }
    copy(data, from, tensors_[i].bytes());
    if (op == ReduceOp::kAverage) {
      kernels::divide(tensors_[i].dtype, data, tensors_[i].count, contributors);
    }
  }
}

namespace {

/// Not 0, which says that an allreduce of one tensor has no scale.
std::uint32_t hash_with_scale(std::uint32_t shapes, const Scale& scale) {
  const std::array<std::uint64_t, 3> words{shapes, std::bit_cast<std::uint64_t>(scale.before()),
                                           std::bit_cast<std::uint64_t>(scale.after())};
  return std::max<std::uint32_t>(
      static_cast<std::uint32_t>(hash_of(std::as_bytes(std::span(words)))), 1);
}

}  // namespace

transport::Fingerprint allreduce_fingerprint(DType dtype, ReduceOp op, std::size_t count) {
  return fingerprint(Kind::kAllreduce, dtype, op, count);
}

AllreduceOperation::AllreduceOperation(std::vector<ConstTensorView> inputs,
                                       std::vector<TensorView> outputs, ReduceOp op,
                                       std::vector<Wire> wires, Scale scale)
    : given_inputs_(std::move(inputs)),
      given_outputs_(std::move(outputs)),
      wires_(wires.empty() ? as_they_are(given_outputs_) : std::move(wires)),
      inputs_(given_inputs_),
      outputs_(given_outputs_, wires_, op),
      op_(op),
      scale_(scale) {
  const std::size_t tensors = inputs_.size();
  const DType dtype = tensors > 0 ? wires_.front().dtype : DType::kU8;
  const bool has_cast = outputs_.has_cast();
  fingerprint_ = fingerprint(Kind::kAllreduce, dtype, op_, outputs_.elements(),
                             tensors > 1 || has_cast ? outputs_.shape_hash() : 0, tensors);
  if (has_cast) fingerprint_.redop |= transport::Fingerprint::kCast;
  if (!scales_nothing(scale_)) fingerprint_.detail = hash_with_scale(outputs_.shape_hash(), scale_);
}

void AllreduceOperation::choose_ways(const plan::AllreduceLimits& limits) {
  if (limits == limits_) return;
  limits_ = limits;
  inputs_.clear();
  zero_copy_.clear();
  packed_places_.clear();
  zero_copy_places_.clear();
  std::vector<TensorView> packed;
  std::vector<Wire> wires;
  for (std::size_t i = 0; i < given_inputs_.size(); ++i) {
    const plan::AllreduceTensor tensor{
        .bytes = given_inputs_[i].count * size_of(wires_[i].dtype),
        .is_whole_call = given_inputs_.size() == 1,
        .is_elementwise = is_elementwise(op_),
        .can_be_zero_copy = wires_[i].dtype == given_inputs_[i].dtype && scales_nothing(scale_)};
    const bool zero_copy = plan::is_zero_copy(plan::choose_way(tensor, limits));
    if (zero_copy) {
      zero_copy_.push_back({given_outputs_[i].dtype, given_outputs_[i].count,
                            static_cast<const std::byte*>(given_inputs_[i].data),
                            static_cast<std::byte*>(given_outputs_[i].data)});
      zero_copy_places_.push_back(i);
    } else {
      inputs_.push_back(given_inputs_[i]);
      packed.push_back(given_outputs_[i]);
      packed_places_.push_back(i);
      wires.push_back(wires_[i]);
    }
  }
  outputs_ = TensorList(std::move(packed), std::move(wires), op_);
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
  outputs_.pack_from(inputs_, scale_.before(), payload.data);
  if (!zero_copy_.empty()) payload.form = collectives::ZeroCopyTensors{zero_copy_};
}
void AllreduceOperation::unpack(const Members& members, const Payload& payload) {
  outputs_.unpack(payload.data, op_, static_cast<std::uint32_t>(members.size()), scale_.after());
  if (!payload.zero_copy().empty()) return;
  std::size_t at = outputs_.bytes();
  for (const collectives::ZeroCopyTensor& tensor : zero_copy_) {
    at = collectives::aligned(at);
    copy(tensor.output, payload.data.data() + at, tensor.bytes());
    at += tensor.bytes();
  }
}

std::vector<Operation::ResultPlace> AllreduceOperation::places() const {
  std::vector<ResultPlace> places;
  places.reserve(given_inputs_.size());
  for (std::size_t i = 0; i < outputs_.tensors().size(); ++i) {
    const std::size_t tensor = zero_copy_.empty() ? i : packed_places_[i];
    places.push_back({tensor, outputs_.offsets()[i], wires_[tensor]});
  }
  std::size_t at = outputs_.bytes();
  for (std::size_t i = 0; i < zero_copy_.size(); ++i) {
    at = collectives::aligned(at);
    places.push_back({zero_copy_places_[i], at, wires_[zero_copy_places_[i]]});
    at += zero_copy_[i].bytes();
  }
  return places;
}

BroadcastOperation::BroadcastOperation(TensorView data, CallRoot root)
    : data_(data), root_(std::move(root)) {}

Call BroadcastOperation::call(const Members& members) {
  Call call = simple_call(Kind::kBroadcast, data_.dtype, ReduceOp::kSum, data_.count);
  call.root = root_.rank_in(members);
  call.fingerprint.detail = root_.detail(members);
  return call;
}
void BroadcastOperation::pack(const Members& /*members*/, Payload& payload) {
  if (root_.is_this_worker()) return pack_whole(data_, lent_from_, payload);
  payload.data.resize(data_.bytes());
}
/// Only now: this worker may be the root of a replay, and in a call that fails its tensor stays.
void BroadcastOperation::unpack(const Members& /*members*/, const Payload& payload) {
  if (root_.is_this_worker()) return;
  copy(static_cast<std::byte*>(data_.data), payload.data.data(), data_.bytes());
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

AllgatherOperation::AllgatherOperation(ConstTensorView block, Take take, RowShape row, Room room)
    : block_(block), take_(std::move(take)), row_(hash_of_row(row)), room_(room) {}

AllgatherOperation::AllgatherOperation(ConstTensorView block, Take take,
                                       std::optional<transport::OwnCall> called_as)
    : block_(block), take_(std::move(take)), called_as_(called_as) {}

Call AllgatherOperation::call(const Members& /*members*/) {
  Call call = simple_call(Kind::kAllgather, block_.dtype, ReduceOp::kSum, block_.count);
  call.fingerprint = allgather_fingerprint(block_.dtype, row_);
  if (called_as_) call.fingerprint.kind = static_cast<std::uint8_t>(*called_as_);
  return call;
}
void AllgatherOperation::pack(const Members& /*members*/, Payload& payload) {
  pack_whole(block_, lent_from_, payload);
  if (lent_from_ != plan::AllreduceLimits::kNever) payload.lent.room = room_;
}
void AllgatherOperation::unpack(const Members& /*members*/, const Payload& payload) {
  const auto counts = payload.counts();
  take_(payload.result(), {counts.begin(), counts.end()});
}

ReduceScatterOperation::ReduceScatterOperation(ConstTensorView data, ReduceOp op, Take take,
                                               Room room)
    : data_(data), op_(op), take_(std::move(take)), room_(room) {}

Call ReduceScatterOperation::call(const Members& /*members*/) {
  return simple_call(Kind::kReduceScatter, data_.dtype, op_, data_.count);
}
void ReduceScatterOperation::pack(const Members& /*members*/, Payload& payload) {
  pack_whole(data_, lent_from_, payload);
  if (!payload.lent.input.empty()) payload.lent.room = room_;
}
void ReduceScatterOperation::unpack(const Members& members, const Payload& payload) {
  take_part(members, payload, data_.dtype, op_, take_);
}

void ReduceScatterOperation::take_part(const Members& members, const Payload& payload, DType dtype,
                                       ReduceOp op, const Take& take) {
  const auto [part, offset] = collectives::own_part(payload, members.rank, size_of(dtype));
  if (op != ReduceOp::kAverage) return take(part, offset);
  // The payload stays what other members have, so that only the caller's own memory is divided.
  const bool in_room = !part.empty() && part.data() == payload.lent.room.data();
  std::vector<std::byte> copied;
  if (!in_room) copied.assign(part.begin(), part.end());
  const std::span<std::byte> mean =
      in_room ? payload.lent.room.first(part.size()) : std::span(copied);
  kernels::divide(dtype, mean.data(), part.size() / size_of(dtype),
                  static_cast<std::uint32_t>(members.size()));
  take(mean, offset);
}

Call MismatchOperation::call(const Members& /*members*/) {
  return impossible_call(error_);
}
void MismatchOperation::pack(const Members& /*members*/, Payload& payload) {
  payload.data.resize(0);
}
void MismatchOperation::unpack(const Members& /*members*/, const Payload& /*payload*/) {}

}  // namespace elastic::coordinator
