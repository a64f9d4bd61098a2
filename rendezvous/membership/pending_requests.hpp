#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace elastic::rendezvous {

/// Requests of people that the job has granted and not carried out yet. They are in the journal, so
/// that the next server carries them out.
struct PendingRequests {
  /// A host that is to have fewer workers once others have come in their place. Times are in
  /// milliseconds since 1970, because the next server may run on another machine.
  struct Limit {
    std::string host;  ///< or the number of its launcher
    int slots = 0;
    std::int64_t replacements = 0;  ///< workers that are yet to come
    std::int64_t due = 0;           ///< they are waited for no longer
    std::int64_t ends = 0;          ///< workers that are there then are ended
    bool ends_given = false;        ///< by a person; otherwise the launcher decides when

    bool operator==(const Limit&) const = default;
  };

  bool stop = false;
  bool launched = false;              ///< with `stop`: see StopJob
  std::vector<std::string> removals;  ///< incarnations of members
  std::vector<Limit> limits;

  bool empty() const { return !stop && removals.empty() && limits.empty(); }
  bool operator==(const PendingRequests&) const = default;
};

}  // namespace elastic::rendezvous
