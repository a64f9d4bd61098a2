#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "coordinator/tensor_request.hpp"

namespace elastic::coordinator {

/// The ranks of a view that have called `join`: they have no more data, and wait until all ranks
/// have called it. The leader's account.
///
/// Pure. Owned by a Negotiator.
class JoinedRanks {
 public:
  /// Enters a view with so many ranks, of which none has joined yet.
  void restart(std::size_t ranks);
  /// `rank` has joined, after `position` operations of the lane. kProtocol if it has already, or is
  /// no rank.
  Status add(int rank, std::uint64_t position);

  bool any() const { return count_ > 0; }
  bool all() const { return count_ > 0 && count_ == joined_at_.size(); }
  bool has(std::size_t rank) const { return rank < joined_at_.size() && joined_at_[rank]; }
  /// The rank that joined last: after the most operations, and of several such the last of which
  /// this rank learned. -1 if there is none.
  int last() const { return last_; }
  /// Why these ranks keep the request from being carried out; `among`: the ranks that make the
  /// call, ascending, if not all do.
  std::string refusal(const TensorRequest& request, const std::vector<int>& among = {}) const;

 private:
  std::vector<std::optional<std::uint64_t>> joined_at_;  // by rank, the position
  std::size_t count_ = 0;
  int last_ = -1;
};

}  // namespace elastic::coordinator
