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

AlltoallOperation::AlltoallOperation(AddressedBlocks blocks, bool ragged, RowShape row, Take take)
    : blocks_(std::move(blocks)), ragged_(ragged), row_(hash_of_row(row)), take_(std::move(take)) {}

Call AlltoallOperation::call(const Members& members) {
  Result<std::vector<std::uint64_t>> counts = blocks_.counts_for(members);
  if (!counts.ok()) return impossible_call("alltoall: " + counts.status().message());
  const std::uint64_t total =
      std::accumulate(counts.value().begin(), counts.value().end(), std::uint64_t{0});
  Call call = simple_call(Kind::kAlltoall, blocks_.dtype(), ReduceOp::kSum, total);
  call.counts = std::move(counts).value();
  call.ragged = ragged_;
  call.fingerprint.redop = ragged_ ? transport::Fingerprint::kRagged : 0;
  call.fingerprint.count = ragged_ ? 0 : call.counts.front();
  call.fingerprint.detail = row_;
  return call;
}
void AlltoallOperation::pack(const Members& members, Payload& payload) {
  if (blocks_.counts_for(members).ok()) blocks_.pack(members, payload.data);
}
void AlltoallOperation::unpack(const Members& members, const Payload& payload) {
  if (payload.of_this_rank()) {
    const auto counts = payload.counts();
    return take_(payload.data.bytes(), {counts.begin(), counts.end()});
  }
  const auto own = collectives::own_blocks(payload, members.rank, size_of(blocks_.dtype()));
  take_(own.data, {own.counts.begin(), own.counts.end()});
}

Call RootedOperation::with_root(Call call, const Members& members) const {
  call.root = root_.rank_in(members);
  call.fingerprint.detail = root_.detail(members);
  return call;
}

GatherOperation::GatherOperation(ConstTensorView block, CallRoot root, RowShape row, Take take)
    : RootedOperation(std::move(root)),
      block_(block),
      row_(hash_of_row(row)),
      take_(std::move(take)) {}

Call GatherOperation::call(const Members& members) {
  Call call =
      with_root(simple_call(Kind::kGather, block_.dtype, ReduceOp::kSum, block_.count), members);
  call.fingerprint.count = row_;  // blocks may differ in count
  return call;
}
void GatherOperation::pack(const Members& /*members*/, Payload& payload) {
  payload.data.resize(block_.bytes());
  if (block_.bytes() > 0) std::memcpy(payload.data.data(), block_.data, block_.bytes());
}
void GatherOperation::unpack(const Members& /*members*/, const Payload& payload) {
  if (!root().is_this_worker()) return;
  const auto counts = payload.counts();
  take_(payload.data.bytes(), {counts.begin(), counts.end()});
}

ScatterOperation::ScatterOperation(AddressedBlocks blocks, CallRoot root, Take take)
    : RootedOperation(std::move(root)), blocks_(std::move(blocks)), take_(std::move(take)) {}

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
  if (root().is_this_worker() && blocks_.counts_for(members).ok()) {
    blocks_.pack(members, payload.data);
  }
}
void ScatterOperation::unpack(const Members& members, const Payload& payload) {
  const auto counts = payload.counts();
  take_(payload.data.bytes(),
        static_cast<std::size_t>(
            std::accumulate(counts.begin(), counts.begin() + members.rank, std::uint64_t{0})));
}

}  // namespace elastic::coordinator
