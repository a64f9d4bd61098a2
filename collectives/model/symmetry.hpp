#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "collectives/plan/hosts.hpp"
#include "collectives/plan/plan.hpp"

namespace elastic::model {

/// Makes the plan of a rank.
using PlanOf = std::function<plan::Plan(int rank)>;

/// Which hosts do the same at the same time, so that the ranks of one stand for all.
///
/// A symmetry moves every host by the same distance, and changes no plan but for the peers, which
/// are moved as well: around the ring of hosts, or by flipping bits of the host's number. Rank i of
/// host 0 then receives from host -d what rank j of host 0 sends to host d. So host 0 alone is
/// walked, and each message that leaves it stands for the one that arrives there from as far away.
///
/// Block sizes that differ by a cache line, because a tensor cannot be cut into equal parts, count
/// as equal; so does a message in two parts, because it goes on at the other end of the tensor.
class Symmetry {
 public:
  enum class Kind : std::uint8_t { kNone, kRing, kFlip };

  /// The symmetry of `plans`. Compares host 0 with the next host and the ones in the middle and at
  /// the end: plans are made by one rule for all.
  static Symmetry find(const plan::Hosts& hosts, const std::vector<PlanOf>& plans);
  explicit Symmetry(const plan::Hosts& hosts, Kind kind = Kind::kNone);

  Kind kind() const { return kind_; }
  /// Ranks that have to be walked.
  const std::vector<int>& ranks() const { return ranks_; }
  /// The walked rank that stands for `rank`.
  int stands_for(int rank) const {
    return kind_ == Kind::kNone ? rank : ranks_[static_cast<std::size_t>(place(rank))];
  }
  /// From host to host; 0 if the ranks share one, or if there is no symmetry.
  int distance(int from_rank, int to_rank) const;

 private:
  int place(int rank) const { return place_[static_cast<std::size_t>(rank)]; }
  bool holds(const std::vector<PlanOf>& plans) const;
  bool alike(const plan::Plan& first, int first_rank, const plan::Plan& other,
             int other_rank) const;

  plan::Hosts hosts_;
  Kind kind_;
  std::vector<int> ranks_;
  std::vector<int> place_;  // of a rank among those of its host
};

}  // namespace elastic::model
