#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/protocol/messages.hpp"

namespace elastic::rendezvous {

/// A member that has reported that it does nothing more in the current generation, with its
/// positions.
struct Reporter {
  Member member;
  Report report;
  bool leaving = false;  ///< leave it out, unless it alone has a result that a member needs
};

struct ViewQuestion {
  const View& current;
  std::uint64_t generation = 0;          ///< of the next view, greater than the current one's
  std::vector<Reporter> reporters;       ///< in the order of the current view
  std::vector<Member> joiners;           ///< oldest first; empty unless at a step boundary
  std::size_t max_members = 0;           ///< further joiners wait; 0: no bound
  std::set<std::string> gone_by_choice;  ///< departed members that did not fail
};

struct ViewAnswer {
  View view;  ///< without `cause` and `below_minimum`
  struct Evicted {
    std::string incarnation;
    std::string reason;
  };
  std::vector<Evicted> evicted;       ///< too far behind; a defect, by rule R1 none is
  std::vector<std::string> retained;  ///< leavers that stay for one more view, to hand over a
                                      ///< result
};

/// Decides the next view from the reports; pure. For each lane with P the greatest reported
/// position, members at P-1 receive the result of operation P-1 from members at P (commit), and
/// operations in flight at P are replayed, or lost without their root. No operation is lost or
/// repeated, because a report is binding, and because an operation completes on no member before
/// every member has entered it: positions differ by one at most. docs/atomicity.md has the proof.
/// Cost: O(lanes * members), times the number of leavers.
ViewAnswer decide_view(const ViewQuestion& question);

}  // namespace elastic::rendezvous
