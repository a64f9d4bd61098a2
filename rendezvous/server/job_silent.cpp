// Workers that were given up because they do not answer, and whose processes have to end: their
// launchers hear of them.
#include <fmt/format.h>

#include "base/log.hpp"
#include "rendezvous/protocol/slot_label.hpp"
#include "rendezvous/server/job.hpp"

namespace elastic::rendezvous {

/// At once, and not once the journal has kept the view without them: other members may wait for
/// their end before they report.
void Job::end_silent(const Decision& decision) {
  for (const auto& [label, pid, why] : decision.silent) {
    const auto slot = parse_slot_label(label);
    if (slot) silent_[label] = {label, pid, why};
    if (slot && launchers_.that_ends(slot->launcher)) {
      launchers_.that_ends(slot->launcher)->send(silent_[label]);
      continue;
    }
    log::warn(
        "job {}: the worker {} does not answer ({}), and no launcher is connected that could end "
        "it: kill its process {} on its host (kill -KILL), because NCCL on the other workers of "
        "that host waits for its end",
        name_, label.empty() ? "without a label" : label, why, pid);
  }
}

/// To a launcher that has connected. It has heard nothing meanwhile.
void Job::tell_of_silent(int launcher) {
  const Peer peer = launchers_.that_ends(launcher);
  if (!peer) return;
  for (const auto& [label, worker] : silent_) {
    const auto slot = parse_slot_label(label);
    if (slot && slot->launcher == launcher) peer->send(worker);
  }
}

}  // namespace elastic::rendezvous
