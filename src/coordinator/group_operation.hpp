#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "coordinator/operation.hpp"
#include "elastic/results.hpp"

namespace elastic::coordinator {

/// The ranks of a group in one view, and what all ranks of the view know of its call.
struct GroupCall {
  std::string name;
  std::vector<int> ranks;  ///< ascending
  std::string mismatch;    ///< not empty: the call ends in kMismatch with this text
};

/// The outcome of a call for the ranks of its group. The ranks outside have no part in it.
struct GroupOutcome {
  Status error;  ///< the same for all ranks of the group
  Contributors contributors;
};

/// "in the group of ranks 0, 2 and 5, numbered from 0"
std::string describe_group(const std::vector<int>& ranks);

/// The ranks of those workers that are members, ascending.
std::vector<int> ranks_among(const Members& members, const std::vector<WorkerId>& workers);

/// The members of a group as a view of their own, in which its ranks are numbered from 0.
Members members_of_group(const Members& members, const std::vector<int>& ranks);

/// A call of some ranks of a view, which all ranks of the view run at the same position: those of
/// the group perform `theirs` among themselves, and all meet at its end. For one view.
///
/// After a death each rank of the group has its result, or none has (rule R11 of
/// docs/atomicity.md): then the call is made again among those that are left.
class GroupOperation : public Operation {
 public:
  /// On a rank outside of the group.
  explicit GroupOperation(GroupCall group) : group_(std::move(group)) {}
  /// On a rank of the group: `theirs` is on its `members`.
  GroupOperation(GroupCall group, Members members, std::unique_ptr<Operation> theirs,
                 std::shared_ptr<GroupOutcome> outcome);

  collectives::Call call(const Members& members) override;
  void pack(const Members& members, collectives::Payload& payload) override;
  void unpack(const Members& members, const collectives::Payload& payload) override;

 private:
  bool performs() const { return theirs_ != nullptr && refused_.ok(); }

  GroupCall group_;
  Members members_;  // of the group; only of a rank in it
  std::unique_ptr<Operation> theirs_;
  std::shared_ptr<GroupOutcome> outcome_;
  Status refused_;  // why the group does not perform the call
};

}  // namespace elastic::coordinator
