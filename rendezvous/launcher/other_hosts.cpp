#include "rendezvous/launcher/other_hosts.hpp"

#include <algorithm>
#include <set>

#include "rendezvous/protocol/slot_label.hpp"

namespace elastic::launcher {

bool others_go_on(const rendezvous::StatusReply& status, int launcher) {
  std::set<int> leaving{launcher};
  if (status.launchers) {
    for (const auto& its : *status.launchers) {
      if (its.slots == 0) leaving.insert(its.number);
    }
  }
  return status.phase == "recovering" ||
         std::ranges::any_of(status.view.members, [&](const auto& member) {
           const auto slot = rendezvous::parse_slot_label(member.label);
           return !slot || !leaving.contains(slot->launcher);
         });
}

}  // namespace elastic::launcher
