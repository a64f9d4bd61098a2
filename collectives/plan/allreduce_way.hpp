#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "collectives/plan/choose.hpp"

namespace elastic::plan {

/// The way of a tensor through an allreduce: where it is reduced, and what carries it there.
enum class AllreduceWay : std::uint8_t {
  kPacked,  ///< in a copy in the lane's work buffer, by a plan on the links
  kDirect,  ///< in the caller's memory, by a plan on the links
  kShared,  ///< in the caller's memory, which the other ranks of the host read in place
  kEager,   ///< in one message from each rank to each other rank
};
constexpr bool is_in_place(AllreduceWay way) {
  return way == AllreduceWay::kDirect || way == AllreduceWay::kShared;
}

/// The sizes for which a view allows a way; the same on all its ranks.
struct AllreduceLimits {
  static constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

  std::size_t eager_below = 0;       ///< fewer bytes than these may be eager
  std::size_t direct_from = kNever;  ///< these and more may be direct

  bool operator==(const AllreduceLimits&) const = default;
};

/// The limits of a view with so many ranks. `most_eager_bytes`: what eager messages take, if every
/// rank can send them to every other. `algorithm`: the one that the program demands, if any.
AllreduceLimits limits_for(int ranks, std::optional<std::size_t> most_eager_bytes,
                           std::optional<Allreduce> algorithm);

/// One tensor of an allreduce, or several that are packed as one.
struct AllreduceTensor {
  std::size_t bytes = 0;           ///< on the wire
  bool is_whole_call = true;       ///< the call moves nothing else
  bool fits_in_place = true;       ///< the caller's memory has the elements as they travel
  bool is_offered_by_all = false;  ///< each rank lets the other ranks read its memory
};

/// Decides which way a tensor takes. A function of its arguments alone: every rank of a view has to
/// choose the same, and does, because its arguments are the same on all ranks. In this order:
///
/// 1. Large tensors stay in the caller's memory. Packing copies a tensor twice; in place, all ranks
///    have to meet once more at the end (Backend::settle). From `direct_from` on that is cheaper.
///    A tensor that is cast, or has been packed, is no longer in the caller's memory as it travels.
///    - Shared, if all ranks have offered their tensors: then no message carries data.
///    - Otherwise direct. A rank with ordinary memory offers nothing, so ranks have to ask first.
/// 2. Eager, if the tensor is small: one exchange, without frames, queues and system calls. Each
///    rank reads the tensors of all ranks, so from some size on a plan moves less. A rank has one
///    message for each operation, so the call must have nothing else.
/// 3. Packed: everything else. Tensors of one type share a section, and so the latency of a plan.
constexpr AllreduceWay choose_way(const AllreduceTensor& tensor, const AllreduceLimits& limits) {
  if (tensor.fits_in_place && tensor.bytes >= limits.direct_from) {
    return tensor.is_offered_by_all ? AllreduceWay::kShared : AllreduceWay::kDirect;
  }
  if (tensor.is_whole_call && tensor.bytes < limits.eager_below) return AllreduceWay::kEager;
  return AllreduceWay::kPacked;
}

}  // namespace elastic::plan
