#include "runtime/small_attempts.hpp"

#include <cstddef>
#include <cstring>

#include "collectives/backend/own_result.hpp"
#include "coordinator/call_shape.hpp"
#include "coordinator/operation.hpp"
#include "coordinator/reduction_operations.hpp"

namespace elastic::runtime {
namespace {

using collectives::Kind;
using collectives::Payload;

/// No backend takes more in a small call, so that larger ones need no attempt.
constexpr std::size_t kMostBytes = std::size_t{16} << 10;

SmallAttempt attempt_at(Kind kind, const ConstTensorView& input, ReduceOp op,
                        const transport::Fingerprint& fingerprint) {
  return {.call = {input.dtype,
                   op,
                   {static_cast<const std::byte*>(input.data), input.bytes()},
                   fingerprint,
                   kind}};
}

/// The same of a call with a root, which has its rank in the view of `members` only.
SmallAttempt with_root(SmallAttempt attempt, const CallRoot& root, const Members& members) {
  attempt.call.root = root.rank_in(members);
  attempt.generation = members.generation;
  attempt.needs = root.needed();
  return attempt;
}

/// Without its root a call ends as lost, for which there is an Operation.
bool suits(const ConstTensorView& input, const CallRoot& root, const Members& members) {
  return input.bytes() <= kMostBytes && !root.is_lost(members);
}

}  // namespace

std::optional<SmallAttempt> small_broadcast(const TensorView& data, const CallRoot& root,
                                            const Members& members) {
  if (!suits(data, root, members)) return std::nullopt;
  SmallAttempt attempt =
      with_root(attempt_at(Kind::kBroadcast, data, ReduceOp::kSum,
                           coordinator::fingerprint(Kind::kBroadcast, data.dtype, ReduceOp::kSum,
                                                    data.count, root.detail(members))),
                root, members);
  if (root.is_this_worker()) {
    attempt.take = [](const Members&, const Payload&) {};
  } else {
    attempt.take = [&data](const Members&, const Payload& payload) {
      if (data.count > 0) std::memcpy(data.data, payload.data.data(), data.bytes());
    };
  }
  return attempt;
}

std::optional<SmallAttempt> small_allgather(const ConstTensorView& block, std::uint32_t row,
                                            const TakeBlocks& take) {
  if (block.bytes() > kMostBytes) return std::nullopt;
  SmallAttempt attempt = attempt_at(Kind::kAllgather, block, ReduceOp::kSum,
                                    coordinator::allgather_fingerprint(block.dtype, row));
  attempt.take = [&take](const Members&, const Payload& payload) {
    const auto counts = payload.counts();
    take(payload.result(), {counts.begin(), counts.end()});
  };
  return attempt;
}

std::optional<SmallAttempt> small_reduce_scatter(const ConstTensorView& data, ReduceOp op,
                                                 const TakePart& take) {
  if (data.bytes() > kMostBytes) return std::nullopt;
  SmallAttempt attempt =
      attempt_at(Kind::kReduceScatter, data, op,
                 coordinator::fingerprint(Kind::kReduceScatter, data.dtype, op, data.count));
  attempt.take = [&take, dtype = data.dtype, op](const Members& members, const Payload& payload) {
    coordinator::ReduceScatterOperation::take_part(members, payload, dtype, op, take);
  };
  return attempt;
}

std::optional<SmallAttempt> small_alltoall(const ConstTensorView& blocks, std::uint32_t row,
                                           const Contributors& to, const TakeBlocks& take) {
  if (blocks.bytes() > kMostBytes || to.size() == 0 || blocks.count % to.size() != 0) {
    return std::nullopt;
  }
  SmallAttempt attempt =
      attempt_at(Kind::kAlltoall, blocks, ReduceOp::kSum,
                 coordinator::alltoall_fingerprint(blocks.dtype, blocks.count / to.size(), row));
  attempt.generation = to.generation();
  attempt.take = [&take, dtype = blocks.dtype](const Members& members, const Payload& payload) {
    coordinator::AlltoallOperation::take_blocks(members, payload, dtype, take);
  };
  return attempt;
}

std::optional<SmallAttempt> small_gather(const ConstTensorView& block, std::uint32_t row,
                                         const CallRoot& root, const Members& members,
                                         const TakeBlocks& take) {
  if (!suits(block, root, members)) return std::nullopt;
  SmallAttempt attempt =
      with_root(attempt_at(Kind::kGather, block, ReduceOp::kSum,
                           coordinator::gather_fingerprint(block.dtype, row, root.detail(members))),
                root, members);
  attempt.take = [&take, is_root = root.is_this_worker()](const Members&, const Payload& payload) {
    if (!is_root) return;
    const auto counts = payload.counts();
    take(payload.result(), {counts.begin(), counts.end()});
  };
  return attempt;
}

std::optional<SmallAttempt> small_scatter(const ConstTensorView& blocks, const Contributors& to,
                                          const CallRoot& root, const Members& members,
                                          const TakePart& take) {
  ConstTensorView given = blocks;
  if (root.is_this_worker()) {
    const bool equal = to.generation() == members.generation && given.count % to.size() == 0;
    if (!equal) return std::nullopt;
  } else {
    given.count = 0;
  }
  if (!suits(given, root, members)) return std::nullopt;
  SmallAttempt attempt =
      with_root(attempt_at(Kind::kScatter, given, ReduceOp::kSum,
                           coordinator::fingerprint(Kind::kScatter, given.dtype, ReduceOp::kSum, 0,
                                                    root.detail(members))),
                root, members);
  attempt.take = [&take, dtype = blocks.dtype](const Members& its, const Payload& payload) {
    const auto own = collectives::own_part(payload, its.rank, size_of(dtype));
    take(own.data, own.offset);
  };
  return attempt;
}

std::optional<SmallAttempt> small_reduce(const ConstTensorView& in, const TensorView& out,
                                         ReduceOp op, const CallRoot& root,
                                         const Members& members) {
  if (!suits(in, root, members)) return std::nullopt;
  SmallAttempt attempt = with_root(
      attempt_at(
          Kind::kReduce, in, op,
          coordinator::fingerprint(Kind::kReduce, in.dtype, op, in.count, root.detail(members))),
      root, members);
  attempt.take = [&out, op, is_root = root.is_this_worker()](const Members& its,
                                                             const Payload& payload) {
    if (is_root) coordinator::ReduceOperation::take_whole(payload, op, its.size(), out);
  };
  return attempt;
}

}  // namespace elastic::runtime
