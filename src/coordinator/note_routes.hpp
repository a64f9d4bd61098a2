#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/status.hpp"

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
  /// The next ranks on the way of this rank's own notes: to all followers, or to the leader.
  const std::vector<int>& targets() const { return rank_ == 0 ? below_ : above_; }
  /// The bytes in which this rank's own note travels.
  std::vector<std::byte> wrap(std::vector<std::byte> note) const;

  /// The use of a note that has arrived from the peer `from`.
  struct Arrival {
    int origin = 0;                  ///< the rank that the note is of
    std::span<const std::byte> own;  ///< for this rank to read; empty if it only passes here
    std::vector<int> pass_to;        ///< send the note, as it came, to these ranks
  };
  /// kProtocol if the note does not say which rank it comes from.
  Result<Arrival> arrive(int from, std::span<const std::byte> note) const;

 private:
  int rank_ = 0;
  int size_ = 0;
  bool tree_ = false;
  std::vector<int> above_;  // towards the leader; empty for the leader
  std::vector<int> below_;  // towards the followers
};

}  // namespace elastic::coordinator
