#include "coordinator/block_operations.hpp"

#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>

#include "collectives/backend/own_result.hpp"

namespace elastic::coordinator {

using collectives::Call;
using collectives::Kind;
using collectives::Payload;

namespace {

/// Lends the caller's input, of blocks that are worth it.
bool lend(std::span<const std::byte> input, Room room, Payload& payload) {
  if (input.size() < collectives::kLentFrom) return false;
  payload.lent = {input, room};
  return true;
}

void pack_blocks(const AddressedBlocks& blocks, const Members& members, Room room,
                 Payload& payload) {
  if (!blocks.counts_for(members).ok()) return;
  if (!lend(blocks.as_they_lie(members), room, payload)) blocks.pack(members, payload.data);
}

}  // namespace

AlltoallOperation::AlltoallOperation(AddressedBlocks blocks, bool ragged, RowShape row, Take take,
                                     Room room)
    : blocks_(std::move(blocks)),
      ragged_(ragged),
      row_(hash_of_row(row)),
      take_(std::move(take)),
      room_(room) {}

Call AlltoallOperation::call(const Members& members) {
  Result<std::vector<std::uint64_t>> counts = blocks_.counts_for(members);
  if (!counts.ok()) return impossible_call("alltoall: " + counts.status().message());
  const std::uint64_t total =
      std::accumulate(counts.value().begin(), counts.value().end(), std::uint64_t{0});
  Call call = simple_call(Kind::kAlltoall, blocks_.dtype(), ReduceOp::kSum, total);
  call.counts = std::move(counts).value();
  call.ragged = ragged_;
  call.fingerprint = alltoall_fingerprint(
      blocks_.dtype(), ragged_ ? 0 : static_cast<std::size_t>(call.counts.front()), row_);
  if (ragged_) call.fingerprint.redop = transport::Fingerprint::kRagged;
  return call;
}
void AlltoallOperation::pack(const Members& members, Payload& payload) {
  pack_blocks(blocks_, members, room_, payload);
}
void AlltoallOperation::unpack(const Members& members, const Payload& payload) {
  take_blocks(members, payload, blocks_.dtype(), take_);
}

void AlltoallOperation::take_blocks(const Members& members, const Payload& payload, DType dtype,
                                    const Take& take) {
  if (payload.of_this_rank()) {
    const auto counts = payload.counts();
    return take(payload.result(), {counts.begin(), counts.end()});
  }
  const auto own = collectives::own_blocks(payload, members.rank, size_of(dtype));
  take(own.data, {own.counts.begin(), own.counts.end()});
}

Call RootedOperation::with_root(Call call, const Members& members) const {
  call.root = root_.rank_in(members);
  call.fingerprint.detail = root_.detail(members);
  return call;
}

GatherOperation::GatherOperation(ConstTensorView block, CallRoot root, RowShape row, Take take,
                                 Room room)
    : RootedOperation(std::move(root)),
      block_(block),
      row_(hash_of_row(row)),
      take_(std::move(take)),
      room_(room) {}

Call GatherOperation::call(const Members& members) {
  Call call =
      with_root(simple_call(Kind::kGather, block_.dtype, ReduceOp::kSum, block_.count), members);
  call.fingerprint = gather_fingerprint(block_.dtype, row_, root().detail(members));
  return call;
}
void GatherOperation::pack(const Members& /*members*/, Payload& payload) {
  const auto* const from = static_cast<const std::byte*>(block_.data);
  if (lend({from, block_.bytes()}, room_, payload)) return;
  payload.data.resize(block_.bytes());
  if (block_.bytes() > 0) std::memcpy(payload.data.data(), block_.data, block_.bytes());
}
void GatherOperation::unpack(const Members& /*members*/, const Payload& payload) {
  if (!root().is_this_worker()) return;
  const auto counts = payload.counts();
  take_(payload.result(), {counts.begin(), counts.end()});
}

ScatterOperation::ScatterOperation(AddressedBlocks blocks, CallRoot root, Take take, Room room)
    : RootedOperation(std::move(root)),
      blocks_(std::move(blocks)),
      take_(std::move(take)),
      room_(room) {}

Call ScatterOperation::call(const Members& members) {
  Call call = simple_call(Kind::kScatter, blocks_.dtype(), ReduceOp::kSum, 0);
  if (root().is_this_worker()) {
    Result<std::vector<std::uint64_t>> counts = blocks_.counts_for(members);
    if (!counts.ok()) return impossible_call("scatter: " + counts.status().message());
    call.counts = std::move(counts).value();
    call.sections.front().count = static_cast<std::size_t>(
        std::accumulate(call.counts.begin(), call.counts.end(), std::uint64_t{0}));
  }
  return with_root(std::move(call), members);
}
void ScatterOperation::pack(const Members& members, Payload& payload) {
  payload.data.resize(0);
  payload.lent.room = room_;
  if (root().is_this_worker()) pack_blocks(blocks_, members, room_, payload);
}
void ScatterOperation::unpack(const Members& members, const Payload& payload) {
  const auto own = collectives::own_part(payload, members.rank, size_of(blocks_.dtype()));
  take_(own.data, own.offset);
}

}  // namespace elastic::coordinator
