#include "coordinator/grouped_operations.hpp"

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "base/hash.hpp"
#include "collectives/backend/own_result.hpp"
#include "collectives/kernels/reduce.hpp"
#include "collectives/plan/group_block.hpp"
#include "elastic/error.hpp"

namespace elastic::coordinator {

using collectives::Call;
using collectives::Kind;
using collectives::Payload;
using collectives::Section;
using plan::GroupBlock;
using plan::GroupSlots;

namespace {

const std::byte* bytes_at(const void* data) {
  return static_cast<const std::byte*>(data);
}

void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

/// Hash over dtypes, and over counts where all ranks have the same.
std::uint32_t hash_of_shapes(std::span<const ConstTensorView> tensors, bool with_counts) {
  std::vector<std::uint64_t> words;
  for (const ConstTensorView& tensor : tensors) {
    words.push_back(static_cast<std::uint64_t>(tensor.dtype));
    if (with_counts) words.push_back(tensor.count);
  }
  return static_cast<std::uint32_t>(hash_of(std::as_bytes(std::span(words))));
}

/// A call on `section`, into which `inputs` have been packed.
Call grouped_call(Kind kind, std::span<const ConstTensorView> inputs, ReduceOp op,
                  const Section& section) {
  const bool same_counts = kind == Kind::kReduceScatter;
  Call call;
  call.kind = kind;
  call.redop = op;
  call.sections = {section};
  std::size_t elements = 0;
  for (const ConstTensorView& input : inputs) {
    call.grouped.push_back({input.dtype, input.count, 0});
    elements += input.count;
  }
  call.fingerprint =
      fingerprint(kind, inputs.empty() ? DType::kU8 : inputs.front().dtype, op,
                  same_counts ? elements : 0, hash_of_shapes(inputs, same_counts), inputs.size());
  call.fingerprint.redop |= transport::Fingerprint::kGrouped;
  return call;
}

std::vector<Operation::ResultPlace> places_of(std::size_t tensors) {
  std::vector<Operation::ResultPlace> places(tensors);
  for (std::size_t i = 0; i < tensors; ++i) places[i].tensor = i;
  return places;
}

}  // namespace

GroupedReduceScatterOperation::GroupedReduceScatterOperation(TensorGroup group, ReduceOp op,
                                                             Accepts accepts)
    : group_(std::move(group)),
      dtype_(group_.inputs.empty() ? DType::kU8 : group_.inputs.front().dtype),
      op_(op),
      accepts_(std::move(accepts)) {}

GroupSlots GroupedReduceScatterOperation::slots_for(const std::vector<ConstTensorView>& inputs,
                                                    std::size_t ranks) {
  std::vector<std::size_t> counts;
  counts.reserve(inputs.size());
  for (const ConstTensorView& input : inputs) counts.push_back(input.count);
  return {std::move(counts), inputs.empty() ? 1 : size_of(inputs.front().dtype), ranks};
}

GroupSlots GroupedReduceScatterOperation::slots_in(const Members& members) const {
  return slots_for(group_.inputs, static_cast<std::size_t>(members.size()));
}

Call GroupedReduceScatterOperation::call(const Members& members) {
  return grouped_call(Kind::kReduceScatter, group_.inputs, op_,
                      {dtype_, slots_in(members).total(), 0});
}

void GroupedReduceScatterOperation::pack(const Members& members, Payload& payload) {
  const GroupSlots slots = slots_in(members);
  const std::size_t element = size_of(dtype_);
  payload.data.resize(slots.total() * element);
  std::byte* to = payload.data.data();
  for (std::size_t rank = 0; rank < slots.ranks(); ++rank) {
    for (std::size_t i = 0; i < slots.tensors(); ++i) {
      const std::size_t bytes = slots.largest(i) * element;
      copy(to, bytes_at(group_.inputs[i].data) + slots.begin(i, rank) * element, bytes);
      to += bytes;
    }
    const std::size_t rest = (slots.slot() - slots.filled()) * element;
    if (rest > 0) std::memset(to, 0, rest);  // it is reduced with the parts
    to += rest;
  }
}

void GroupedReduceScatterOperation::unpack(const Members& members, const Payload& payload) {
  const GroupSlots slots = slots_in(members);
  if (!accepts_(members, slots)) return;
  const std::size_t element = size_of(dtype_);
  const auto rank = static_cast<std::size_t>(members.rank);
  const std::span<const std::byte> slot =
      collectives::own_part(payload, members.rank, element).data;
  for (std::size_t i = 0; i < slots.tensors(); ++i) {
    const std::size_t count = slots.count(i, rank);
    auto* const to = static_cast<std::byte*>(group_.outputs[i].data);
    copy(to, slot.data() + slots.place(i) * element, count * element);
    if (op_ == ReduceOp::kAverage) {
      kernels::divide(dtype_, to, count, static_cast<std::uint32_t>(members.size()));
    }
  }
}

std::vector<Operation::ResultPlace> GroupedReduceScatterOperation::places() const {
  return places_of(group_.inputs.size());
}

GroupedAllgatherOperation::GroupedAllgatherOperation(TensorGroup group, Accepts accepts)
    : group_(std::move(group)), accepts_(std::move(accepts)) {}

std::vector<std::size_t> GroupedAllgatherOperation::own_bytes() const {
  std::vector<std::size_t> bytes;
  bytes.reserve(group_.inputs.size());
  for (const ConstTensorView& input : group_.inputs) bytes.push_back(input.bytes());
  return bytes;
}

Call GroupedAllgatherOperation::call(const Members& /*members*/) {
  return grouped_call(Kind::kAllgather, group_.inputs, ReduceOp::kSum,
                      {DType::kU8, GroupBlock(own_bytes()).bytes(), 0});
}

void GroupedAllgatherOperation::pack(const Members& /*members*/, Payload& payload) {
  const GroupBlock block(own_bytes());
  const std::size_t tensors = group_.inputs.size();
  payload.data.resize(block.bytes());
  std::byte* const to = payload.data.data();
  for (std::size_t i = 0; i < tensors; ++i) {
    const std::uint64_t count = group_.inputs[i].count;
    std::memcpy(to + GroupBlock::head(i), &count, sizeof count);
  }
  std::size_t written = GroupBlock::head(tensors);
  for (std::size_t i = 0; i < tensors; ++i) {
    std::memset(to + written, 0, block.place(i) - written);
    copy(to + block.place(i), bytes_at(group_.inputs[i].data), group_.inputs[i].bytes());
    written = block.place(i) + group_.inputs[i].bytes();
  }
  if (written < block.bytes()) std::memset(to + written, 0, block.bytes() - written);
}

namespace {

/// The block of one rank in the result.
struct RankBlock {
  std::span<const std::byte> data;
  std::vector<std::size_t> bytes;  ///< of each tensor
};

[[noreturn]] void refuse_block(std::size_t rank) {
  throw Error(ErrorCode::kInternal, "the block of rank " + std::to_string(rank) +
                                        " in a grouped_allgather is not as long as its numbers of "
                                        "elements say; report this as a defect of elastic");
}

/// Reads the numbers of elements. Those of a sound block fit into it.
RankBlock read_block(std::size_t rank, std::span<const std::byte> data,
                     std::span<const TensorView> tensors) {
  RankBlock block{data, {}};
  if (data.size() < GroupBlock::head(tensors.size())) refuse_block(rank);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    std::uint64_t count = 0;
    std::memcpy(&count, data.data() + GroupBlock::head(i), sizeof count);
    if (count > data.size()) refuse_block(rank);
    block.bytes.push_back(static_cast<std::size_t>(count) * size_of(tensors[i].dtype));
  }
  if (GroupBlock(block.bytes).bytes() != data.size()) refuse_block(rank);
  return block;
}

std::vector<RankBlock> read_blocks(const Payload& payload, std::span<const TensorView> tensors) {
  std::vector<RankBlock> blocks;
  std::span<const std::byte> rest = payload.result();
  for (const std::uint64_t size : payload.counts()) {
    const auto bytes = static_cast<std::size_t>(size);
    blocks.push_back(read_block(blocks.size(), rest.first(bytes), tensors));
    rest = rest.subspan(bytes);
  }
  return blocks;
}

}  // namespace

void GroupedAllgatherOperation::unpack(const Members& /*members*/, const Payload& payload) {
  const std::vector<RankBlock> blocks = read_blocks(payload, group_.outputs);
  const std::size_t tensors = group_.outputs.size();
  Counts counts(tensors);
  for (const RankBlock& block : blocks) {
    for (std::size_t i = 0; i < tensors; ++i) {
      counts[i].push_back(block.bytes[i] / size_of(group_.outputs[i].dtype));
    }
  }
  if (!accepts_(std::move(counts))) return;
  std::vector<std::size_t> filled(tensors, 0);
  for (const RankBlock& block : blocks) {
    const GroupBlock layout(block.bytes);
    for (std::size_t i = 0; i < tensors; ++i) {
      copy(static_cast<std::byte*>(group_.outputs[i].data) + filled[i],
           block.data.data() + layout.place(i), block.bytes[i]);
      filled[i] += block.bytes[i];
    }
  }
}

std::vector<Operation::ResultPlace> GroupedAllgatherOperation::places() const {
  return places_of(group_.inputs.size());
}

}  // namespace elastic::coordinator
