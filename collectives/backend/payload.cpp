#include "collectives/backend/payload.hpp"

#include <cstring>
#include <utility>

namespace elastic::collectives {
namespace {

using Pieces = std::vector<std::span<const std::byte>>;

/// The memory outside of Payload::data, in the order of the contiguous layout.
struct PiecesOf {
  Pieces operator()(const Packed& /*form*/) const { return {}; }
  Pieces operator()(const Blocks& /*form*/) const { return {}; }
  Pieces operator()(const OnDevice& /*form*/) const { return {}; }
  Pieces operator()(const ResultOnDevice& /*form*/) const { return {}; }
  Pieces operator()(const StateSections& form) const {
    return {form.sections.begin(), form.sections.end()};
  }
  Pieces operator()(const ZeroCopyTensors& form) const {
    Pieces pieces;
    for (const ZeroCopyTensor& tensor : form.tensors) {
      pieces.emplace_back(tensor.output, tensor.bytes());
    }
    return pieces;
  }
};

}  // namespace

std::span<const ZeroCopyTensor> Payload::zero_copy() const {
  const auto* has = std::get_if<ZeroCopyTensors>(&form);
  return has == nullptr ? std::span<const ZeroCopyTensor>() : has->tensors;
}

std::span<const std::uint64_t> Payload::counts() const {
  if (const auto* on_device = std::get_if<ResultOnDevice>(&form)) return on_device->counts;
  const auto* const blocks = std::get_if<Blocks>(&form);
  return blocks == nullptr ? std::span<const std::uint64_t>() : blocks->counts;
}

bool Payload::own_block_complete() const {
  if (group && group->complete) return true;
  if (const auto* on_device = std::get_if<ResultOnDevice>(&form)) return on_device->complete;
  const auto* const blocks = std::get_if<Blocks>(&form);
  return blocks != nullptr && blocks->own_block_complete;
}

bool Payload::of_this_rank() const {
  if (std::holds_alternative<ResultOnDevice>(form)) return true;
  const auto* const blocks = std::get_if<Blocks>(&form);
  return blocks != nullptr && blocks->of_this_rank;
}

std::span<const std::byte> Payload::result() const {
  const auto* const blocks = std::get_if<Blocks>(&form);
  return blocks != nullptr && blocks->delivered ? std::span<const std::byte>(lent.room)
                                                : data.bytes();
}

DeviceTensors* Payload::on_device() const {
  const auto* has = std::get_if<OnDevice>(&form);
  return has == nullptr ? nullptr : has->tensors;
}

std::shared_ptr<DeviceResult> Payload::device_result() const {
  const auto* has = std::get_if<ResultOnDevice>(&form);
  return has == nullptr ? nullptr : has->result;
}

void Payload::swap(Payload& other) noexcept {
  std::swap(data, other.data);
  std::swap(undo, other.undo);
  std::swap(lent, other.lent);
  form.swap(other.form);
  group.swap(other.group);
}

void Payload::clear() {
  data.resize(0);
  undo = nullptr;
  lent = {};
  form = Packed{};
  group.reset();
}

void Payload::make_contiguous() {
  const Pieces pieces = std::visit(PiecesOf{}, form);
  if (pieces.empty()) return;
  std::size_t bytes = data.size();
  for (const auto& piece : pieces) bytes = aligned(bytes) + piece.size();
  Buffer whole;
  whole.resize(bytes);
  std::size_t at = data.size();
  if (at > 0) std::memcpy(whole.data(), data.data(), at);
  for (const auto& piece : pieces) {
    at = aligned(at);
    if (!piece.empty()) std::memcpy(whole.data() + at, piece.data(), piece.size());
    at += piece.size();
  }
  data = std::move(whole);
  form = Packed{};
}

void Payload::release_tensors() {
  lent = {};
  if (!zero_copy().empty() || on_device() != nullptr) form = Packed{};
  if (auto* const has = std::get_if<ResultOnDevice>(&form)) has->result.reset();
}

}  // namespace elastic::collectives
