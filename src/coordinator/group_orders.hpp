#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "coordinator/joined_ranks.hpp"
#include "coordinator/negotiation_note.hpp"
#include "coordinator/rank_range.hpp"

namespace elastic::coordinator {

/// The negotiation of calls that only some ranks make. Each of these ranks tells the leader, which
/// orders the call on all ranks of the view when the last one has. Such calls are never fused, and
/// the leader need not be one of the ranks.
///
/// Pure. Owned by a Negotiator.
class GroupOrders {
 public:
  /// This rank submits a call. kInvalidArgument if its name is under way already, or it is not
  /// valid.
  Status submit(const GroupRequest& request);
  /// The leader: `from` have submitted a call. \returns the order if they were the last to do so.
  /// kProtocol for ranks that are not in the group, or have submitted it already.
  /// Ranks that have `joined` are not waited for.
  Result<std::optional<RunInGroup>> submitted(RankRange from, GroupRequest request,
                                              const JoinedRanks& joined = {});
  /// The leader: the orders of calls that wait for no rank but those that have joined.
  std::vector<RunInGroup> complete_but_for(const JoinedRanks& joined);
  /// A follower: the leader's order. kProtocol if this rank is in the group and has not submitted
  /// the call. `has_joined`: this rank, which need not have submitted it then.
  Status ordered(const RunInGroup& order, int rank, bool has_joined = false) const;
  /// The order has its result: the name is free again.
  void completed(const std::string& name) { own_.erase(name); }
  /// Enters a new view, in which this rank submits its calls again.
  void restart();

 private:
  struct Submitted {
    GroupRequest first;
    int first_rank = 0;
    std::set<int> ranks;   ///< that have submitted it
    std::string mismatch;  ///< the calls of two ranks, if they differ

    bool is_complete_but_for(const JoinedRanks& joined) const;
  };
  static RunInGroup order_of(Submitted call, const JoinedRanks& joined);

  std::set<std::string> own_;                   // calls of this rank that are under way
  std::map<std::string, Submitted> submitted_;  // leader
};

}  // namespace elastic::coordinator
