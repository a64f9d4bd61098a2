#pragma once

#include <cstdint>
#include <optional>

#include "coordinator/block_operations.hpp"
#include "coordinator/call_root.hpp"
#include "coordinator/small_attempt.hpp"
#include "elastic/results.hpp"
#include "elastic/types.hpp"

namespace elastic::runtime {

// The attempts at collectives of small data that cost less than an Operation, each the same call as
// the Operation of its name. Nothing for data that is too large. The arguments that are references
// must outlive the attempt.

using coordinator::CallRoot;
using coordinator::Members;
using coordinator::SmallAttempt;
using TakeBlocks = coordinator::AlltoallOperation::Take;
using TakePart = coordinator::ScatterOperation::Take;

std::optional<SmallAttempt> small_broadcast(const TensorView& data, const CallRoot& root,
                                            const Members& members);
/// `row`: see coordinator::hash_of_row.
std::optional<SmallAttempt> small_allgather(const ConstTensorView& block, std::uint32_t row,
                                            const TakeBlocks& take);
std::optional<SmallAttempt> small_reduce_scatter(const ConstTensorView& data, ReduceOp op,
                                                 const TakePart& take);
/// The blocks are equal, and for the workers of `to` in their order.
std::optional<SmallAttempt> small_alltoall(const ConstTensorView& blocks, std::uint32_t row,
                                           const Contributors& to, const TakeBlocks& take);
std::optional<SmallAttempt> small_gather(const ConstTensorView& block, std::uint32_t row,
                                         const CallRoot& root, const Members& members,
                                         const TakeBlocks& take);
/// The blocks are equal, and for the workers of `to` in their order.
std::optional<SmallAttempt> small_scatter(const ConstTensorView& blocks, const Contributors& to,
                                          const CallRoot& root, const Members& members,
                                          const TakePart& take);
std::optional<SmallAttempt> small_reduce(const ConstTensorView& in, const TensorView& out,
                                         ReduceOp op, const CallRoot& root, const Members& members);

}  // namespace elastic::runtime
