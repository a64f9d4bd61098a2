#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace elastic::rendezvous {

/// How a worker's data plane is reached; opaque to the server.
struct Endpoints {
  std::string host;              ///< equal for workers on one machine; gives local ranks
  std::vector<std::string> tcp;  ///< "address:port"
  std::string local;             ///< abstract AF_UNIX name

  bool operator==(const Endpoints&) const = default;
};

/// One member of a view, in the order of ranks: oldest first.
struct Member {
  std::string incarnation;  ///< drawn by the worker process at start
  Endpoints endpoints;
  std::int64_t pid = 0;
  std::string label;    ///< the launcher's name for the slot, "" without a launcher
  bool synced = false;  ///< has the job's state. Until the first synchronisation no member has it

  bool operator==(const Member&) const = default;
};

/// The decision of a view on a lane. Members at position `position - 1` obtain the result of
/// operation `position - 1` from `holders` (it is *committed*); all others go on, and operations in
/// flight at `position` are *replayed*, unless `lost` says that operation `position` cannot be: its
/// broadcast root is gone and it ends in kRootLost on every member.
struct LaneDecision {
  std::uint64_t position = 0;
  std::vector<std::string>
      holders;                      ///< incarnations of members that have the result; empty: all do
  std::vector<std::string> takers;  ///< incarnations of members that lack it
  bool lost = false;                ///< the operation, not a member; see View::lost

  bool operator==(const LaneDecision&) const = default;
};

/// Two members with a failed link between them in the view before.
struct BrokenPair {
  std::string one;
  std::string other;
  bool operator==(const BrokenPair&) const = default;
};

/// The agreed membership.
struct View {
  std::uint64_t generation = 0;
  std::vector<Member> members;      ///< in rank order
  std::vector<LaneDecision> lanes;  ///< one per lane
  std::uint64_t commits = 0;        ///< steps committed; what a joiner starts from
  std::uint64_t admitted_at = 0;  ///< value of `commits` when joiners were last admitted; 0: never.
                                  ///< Members at that boundary synchronise their state
  std::string cause;              ///< for people: "worker 3f2a (rank 2) died: connection closed"
  std::vector<std::string> joined;  ///< incarnations, against the view before
  std::vector<std::string> lost;    ///< members that died or were evicted
  std::vector<std::string> left;    ///< members that went by choice or on request
  std::vector<BrokenPair> broken;   ///< both make new links between them
  bool below_minimum = false;       ///< go on to the next step boundary, then wait there

  bool operator==(const View&) const = default;
};

/// A view that nothing changes any more, with all that hold it: one of a large job has megabytes.
using SharedView = std::shared_ptr<const View>;

}  // namespace elastic::rendezvous
