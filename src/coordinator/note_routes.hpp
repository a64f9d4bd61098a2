#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "coordinator/negotiation_note.hpp"
#include "coordinator/rank_range.hpp"

namespace elastic::coordinator {

/// The ways that notes take between rank 0, the leader of the negotiation, and its followers:
/// directly, or in views where not all ranks are linked along a binomial tree, so that the leader
/// has log2(size) links in use and not `size`. On the tree a note to the leader carries the rank
/// that it comes from, and a note from the leader goes to all followers.
///
/// Pure: says what to send, and leaves sending to the caller.
class NoteRoutes {
 public:
  NoteRoutes() = default;
  NoteRoutes(int rank, int size, bool all_linked);

  /// The ranks that notes come from and go to.
  std::vector<int> peers() const;
  /// The ranks that a follower gathers the notes of: itself, and those below it.
  RankRange subtree() const { return subtree_of(rank_); }
  /// The next ranks on the way of this rank's notes: to all followers, or to the leader.
  const std::vector<int>& targets() const { return rank_ == 0 ? below_ : above_; }
  /// The bytes in which a note of this rank travels.
  std::vector<std::byte> wrap(RanksNote note) const;

  /// The use of a note that has arrived from the peer `from`.
  struct Arrival {
    RankRange from;                   ///< the ranks that the note is of
    std::span<const std::byte> note;  ///< for this rank to read
    std::vector<int> pass_to;         ///< send it, as it came, to these ranks
  };
  /// kProtocol if the note does not say of which ranks below the peer it is.
  Result<Arrival> arrive(int from, std::span<const std::byte> note) const;

 private:
  RankRange subtree_of(int rank) const;

  int rank_ = 0;
  int size_ = 0;
  bool tree_ = false;
  std::vector<int> above_;  // towards the leader; empty for the leader
  std::vector<int> below_;  // towards the followers
};

}  // namespace elastic::coordinator
