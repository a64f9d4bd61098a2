#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "collectives/plan/choose.hpp"

namespace elastic::plan {

/// The way of a tensor through an allreduce: where it is reduced, and what carries it there.
enum class AllreduceWay : std::uint8_t {
  kPacked,          ///< in a copy in the lane's work buffer, by a plan on the links
  kZeroCopyLinks,   ///< in the caller's memory, by a plan on the links
  kZeroCopyShared,  ///< in the caller's memory, which the other ranks of the host read in place
  kEager,           ///< in one message from each rank to each other rank
};
constexpr bool is_zero_copy(AllreduceWay way) {
  return way == AllreduceWay::kZeroCopyLinks || way == AllreduceWay::kZeroCopyShared;
}

/// The sizes for which a view allows a way; the same on all its ranks.
struct AllreduceLimits {
  static constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

  std::size_t eager_below = 0;          ///< fewer bytes than these may be eager
  std::size_t zero_copy_from = kNever;  ///< these and more may be zero-copy
  /// Of the other collectives with tensors: inputs of these and more may stay in the caller's
  /// memory (collectives::Lent).
  std::size_t lent_from = kNever;

  bool operator==(const AllreduceLimits&) const = default;
};

/// The limits of a view with `ranks` ranks. `most_eager_bytes`: the capacity of an eager message;
/// nothing if some rank cannot send one to every other rank. `algorithm`: the one that the options
/// demand, if any.
AllreduceLimits limits_for(int ranks, std::optional<std::size_t> most_eager_bytes,
                           std::optional<AllreduceAlgorithm> algorithm);

/// One tensor of an allreduce, or several that are packed as one.
struct AllreduceTensor {
  std::size_t bytes = 0;           ///< on the wire
  bool is_whole_call = true;       ///< the call has no other tensor
  bool is_elementwise = true;      ///< parts of it can be reduced by themselves: not by Adasum
  bool can_be_zero_copy = true;    ///< not packed, and travels in the type that it has in memory
  bool is_offered_by_all = false;  ///< every rank lets all others, on its host, read the memory
};

/// Chooses the way of a tensor. All ranks of a view have to choose the same way, so the choice
/// depends only on arguments that are equal on all ranks. The first rule that applies:
///
/// 1. A tensor that is not reduced element by element is packed: the other ways reduce parts of it
///    by themselves.
/// 2. A large tensor stays in the caller's memory. Packing copies it twice; working in place needs
///    one more barrier at the end (Backend::settle). From `zero_copy_from` bytes on the barrier is
///    cheaper. A tensor that is cast or has been packed cannot be worked on in place.
///    - Shared, if every rank has offered its tensor: then no message carries data.
///    - Over the links otherwise. Only memory of `elastic::allocate` can be offered. Ranks may
///    differ in
///      that, so they agree first.
/// 3. A small tensor that is the whole call is eager: one exchange without frames, queues and
///    system calls. Each rank reads the tensors of all ranks, so from some size on a plan moves
///    less data. Each rank has a single message for an operation, which takes no second tensor.
/// 4. Every other tensor is packed. Tensors of one type share a section, and the latency of a plan.
constexpr AllreduceWay choose_way(const AllreduceTensor& tensor, const AllreduceLimits& limits) {
  if (!tensor.is_elementwise) return AllreduceWay::kPacked;
  if (tensor.can_be_zero_copy && tensor.bytes >= limits.zero_copy_from) {
    return tensor.is_offered_by_all ? AllreduceWay::kZeroCopyShared : AllreduceWay::kZeroCopyLinks;
  }
  if (tensor.is_whole_call && tensor.bytes < limits.eager_below) return AllreduceWay::kEager;
  return AllreduceWay::kPacked;
}

}  // namespace elastic::plan
