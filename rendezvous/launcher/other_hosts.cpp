#include "rendezvous/launcher/other_hosts.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "rendezvous/protocol/slot_label.hpp"

namespace elastic::launcher {

OtherHosts other_hosts(const rendezvous::StatusReply& status, int launcher) {
  std::set<int> leaving{launcher};
  bool runs = false;
  if (status.launchers) {
    for (const auto& its : *status.launchers) {
      if (its.slots == 0) leaving.insert(its.number);
      runs |= its.number != launcher && its.slots > 0 && its.connected && its.running > 0;
    }
  }
  const auto stays = [&](const auto& worker) {
    const auto slot = rendezvous::parse_slot_label(worker.label);
    return !slot || !leaving.contains(slot->launcher);
  };
  return {status.phase == "recovering" || std::ranges::any_of(status.view.members, stays),
          runs || std::ranges::any_of(status.joiners, stays)};
}

}  // namespace elastic::launcher
