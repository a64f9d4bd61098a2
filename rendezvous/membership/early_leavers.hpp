#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace elastic::rendezvous {

/// Members that left because they took the job to be at its end, and whether it was. At a job's end
/// all members have completed the same steps, however long some of them then take to leave. So a
/// member that left was early where another completes a later step than it ever did.
///
/// Belongs to the thread of its Membership.
class EarlyLeavers {
 public:
  /// How far a member has come.
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

  /// A remaining member has come so far. Returns those that were early, each once. `by_commits`:
  /// the program commits steps. Otherwise operations count.
  std::vector<Leaver> passed_by(const Reached& member, bool by_commits);

  /// Of an early leaver, for people: "after 5 steps, while the others trained on".
  static std::string describe(const Leaver& leaver, bool by_commits);

 private:
  std::vector<Leaver> finished_;
};

}  // namespace elastic::rendezvous
