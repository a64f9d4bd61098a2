#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/protocol/messages.hpp"

namespace elastic::rendezvous {

/// A member that has promised to do nothing more in the current generation, and how far it is.
struct Reporter {
  Member member;
  Report report;
  bool leaving = false;  ///< is to be left out, unless somebody needs a result that only it has
};

struct ViewQuestion {
  const View& current;
  std::uint64_t generation = 0;          ///< of the next view, greater than the current one's
  std::vector<Reporter> reporters;       ///< in the order of the current view
  std::vector<Member> joiners;           ///< oldest first; none where this is no step boundary
  std::size_t max_members = 0;           ///< joiners beyond it wait; 0: no bound
  std::set<std::string> gone_by_choice;  ///< members that are gone, but did not fail
};

struct ViewAnswer {
  View view;  ///< without `cause` and `below_minimum`
  struct Evicted {
    std::string incarnation;
    std::string reason;
  };
  std::vector<Evicted> evicted;       ///< reported something that cannot be repaired
  std::vector<std::string> retained;  ///< leavers that must stay once more, to hand over a result
};

/// The next view. Pure; the proof that it neither loses nor repeats an operation rests on two
/// facts: a report is a promise, and no operation completes anywhere before every member has
/// entered it, so that positions differ by one at most.
ViewAnswer decide_view(const ViewQuestion& question);

}  // namespace elastic::rendezvous
