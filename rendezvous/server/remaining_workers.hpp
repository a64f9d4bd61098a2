#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace elastic::rendezvous {

/// A member of the job, and where it runs.
struct PlacedMember {
  int launcher = -1;    ///< number of the launcher that started it; -1: none did
  bool leaves = false;  ///< it was asked to leave, or is gone
};

/// A launcher, and the workers that it may have.
struct WorkerPlace {
  int launcher = 0;  ///< its number
  std::string host;
  std::int64_t slots = 0;  ///< 0: its host is drained
  bool open = true;        ///< workers are started there, if slots are free
};

/// The workers that a job has once all have left that are to leave.
struct RemainingWorkers {
  std::int64_t count = 0;    ///< with replacements
  std::int64_t surplus = 0;  ///< members that their launchers have no slots for any more
  /// Members that are to leave, or are gone, by host; "": no launcher started them.
  std::map<std::string, std::int64_t> leaving;

  std::int64_t count_leaving() const;
};

/// Members for which a launcher has no slots leave. As many workers take their place as there are
/// slots without a member at other launchers: such a slot is free, or its worker is about to join.
/// Nothing replaces a member that leaves by itself. Linear in members and launchers.
RemainingWorkers remaining_workers(const std::vector<PlacedMember>& members,
                                   const std::vector<WorkerPlace>& places, bool joinable);

/// "; leaving already: 2 of h1, 1 of h2"; empty if no member leaves.
std::string leaving_text(const RemainingWorkers& remaining);

}  // namespace elastic::rendezvous
