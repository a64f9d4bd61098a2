#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace elastic::rendezvous {

/// Detects members that left early: they said that the job was at its end, and it was not. At a
/// job's end all members have completed the same steps, however long some of them take to leave. A
/// member was early if another one completes a later step than it ever did. Cost: O(leavers) per
/// heartbeat.
///
/// Not thread-safe: belongs to the thread of its Membership.
class EarlyLeavers {
 public:
  /// The progress of a member.
  struct Reached {
    std::uint64_t commits = 0;
    std::vector<std::uint64_t> positions;  ///< per lane; empty: unknown
  };
  struct Leaver {
    std::string label;
    std::string name;  ///< for people
    Reached reached;
  };

  void left(Leaver leaver) { finished_.push_back(std::move(leaver)); }
  bool any() const { return !finished_.empty(); }

  /// Compares the leavers with the progress of a remaining member: by committed steps, or without
  /// `by_commits`, for a program that commits none, by operations.
  /// \returns the leavers that were early, each once.
  std::vector<Leaver> passed_by(const Reached& member, bool by_commits);

  /// Describes an early leaver, for people: "its elastic::run ended after 5 steps, and the others
  /// trained on".
  static std::string describe(const Leaver& leaver, bool by_commits);

 private:
  std::vector<Leaver> finished_;
};

}  // namespace elastic::rendezvous
