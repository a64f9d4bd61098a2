#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/lane_view.hpp"
#include "elastic/group.hpp"

namespace elastic::runtime {

/// The members to which the rules of groups are applied: those among which the state was last made
/// the same, or before that those of the view that has admitted this worker, which need not have
/// come into force. The same on all members, whichever views each of them has seen since.
struct Roster {
  std::uint64_t generation = 0;      ///< of the view in which they met; 0: that of the admission
  std::vector<GroupMember> members;  ///< in rank order
};

inline Roster roster_of(const coordinator::Members& members, std::uint64_t generation) {
  Roster roster{generation, {}};
  for (std::size_t rank = 0; rank < members.ids->size(); ++rank) {
    roster.members.push_back({(*members.ids)[rank], members.hosts[rank]});
  }
  return roster;
}

}  // namespace elastic::runtime
