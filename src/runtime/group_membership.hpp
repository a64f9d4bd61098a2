#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "coordinator/lane_view.hpp"
#include "elastic/group.hpp"
#include "runtime/roster.hpp"

namespace elastic::runtime {

/// The rules of a group in words. Different rules may have the same.
std::string group_name(std::span<const GroupRule> rules);
/// Tells the calls and messages of a group from those of groups by other rules, in few bytes: the
/// begin of the rules in words, and a hash.
std::string group_mark(std::span<const GroupRule> rules);

/// The members of one group, and the names of its calls: those without a name get one, by their
/// number in the group.
///
/// Pure. One thread at a time.
class GroupMembership {
 public:
  using Rules = std::vector<GroupRule>;

  /// Each rule chooses among the members that the rule before it has chosen.
  explicit GroupMembership(Rules rules);

  /// Applies the rules if `roster` is another one than before. `self`: this worker. `joins`: the
  /// joins (Context::join) that have ended here, the same on all members.
  void renew(const std::shared_ptr<const Roster>& roster, WorkerId self, std::uint64_t joins);

  // After the first `renew`.
  /// The workers of the roster that the rules have chosen. Some may have left since.
  const std::shared_ptr<const std::vector<WorkerId>>& workers() const { return workers_; }
  /// Those of them that are in a view, as a view of their own; rank -1 if this worker is not there.
  std::shared_ptr<const coordinator::Members> present(const coordinator::Members& view);
  /// The name that the group's call `name` has among the calls of the job. Empty: the next call
  /// without a name.
  std::string name_call(const std::string& name);
  /// The latest call without a name, `name`, has left nothing behind here: the next one is the same
  /// call on the other members.
  void forget_call(const std::string& name);

 private:
  const Rules rules_;
  const std::string mark_;
  std::shared_ptr<const Roster> roster_;
  std::shared_ptr<const std::vector<WorkerId>> workers_;
  std::shared_ptr<const coordinator::Members> present_;  // in the view last looked at
  std::string prefix_;                                   // of the names of its calls
  /// The calls without a name since the latest join, by the prefix of their names.
  std::unordered_map<std::string, std::uint64_t> calls_;
  std::uint64_t joins_ = 0;
};

}  // namespace elastic::runtime
