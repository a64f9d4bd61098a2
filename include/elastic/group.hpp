#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "elastic/collectives.hpp"
#include "elastic/detail/export.hpp"
#include "elastic/results.hpp"

namespace elastic {

class Context;

/// One member of the job, for the rule of a group.
struct GroupMember {
  WorkerId id = 0;  ///< of the worker
  int host = 0;     ///< a number that is the same for the members on one host
};

/// Says which members are in a group. A rule is applied to the members of the job when they are
/// made the same (Context::run, and each commit at which workers join), so that it gives the same
/// on all of them. Between these moments a group loses the members that leave, and no rule is
/// applied.
class ELASTIC_API GroupRule {
 public:
  /// Chooses among the members of the job, in rank order, those of the group that `self` is in or
  /// looks at. It must give the same group on all members of that group: it may depend on its
  /// arguments alone.
  using Choose =
      std::function<std::vector<WorkerId>(std::span<const GroupMember> members, WorkerId self)>;

  /// \returns the rule for the members on this worker's host.
  static GroupRule per_host();
  /// \returns the rule for the members that have this worker's rank among the members on their host.
  static GroupRule across_hosts();
  /// \returns the rule for the members with the ranks first, first + step, first + 2 * step and so on.
  /// \throws Error kInvalidArgument: `step` is not positive, or `first` is negative.
  static GroupRule every(int step, int first = 0);
  /// \returns the rule for the members that have these ranks. Ranks that no member has are left out.
  /// \throws Error kInvalidArgument: a rank is negative, or there twice.
  static GroupRule ranks(std::vector<int> ranks);
  /// \returns the rule for these workers, as far as they are members.
  static GroupRule workers(std::vector<WorkerId> workers);
  /// \returns the rule of a function. Rules with the same name are the same rule. The function must not ask
  /// for a group, nor ask one for anything, and must not wait for another thread that does: the
  /// group is locked while its rule is applied. In it Context::group, the functions of Group, and
  /// collectives throw Error(kInvalidArgument).
  /// \throws Error kInvalidArgument: the name is empty, or there is no function.
  static GroupRule by(std::string name, Choose choose);

  /// \returns the rule in words, such as "per host".
  const std::string& name() const { return name_; }
  /// \returns the members of the group, in the order of `members`.
  std::vector<GroupMember> choose(std::span<const GroupMember> members, WorkerId self) const;

 private:
  GroupRule(std::string name, Choose choose) : name_(std::move(name)), choose_(std::move(choose)) {}

  std::string name_;
  Choose choose_;
};

/// Some of a job's members, with collectives of their own. Context::group makes it.
///
///     elastic::Group& host = context.group(elastic::GroupRule::per_host());
///     host.allreduce(gradient);
///
/// All that Collectives says holds among the members of the group: they make the same calls in the
/// same order, ranks and roots are those in the group, and after a death the same call returns the
/// right result on the survivors. The calls of a group keep their order among themselves only: a
/// worker may be in several groups, and call them in any order, from any thread.
///
/// A group goes through changes of the view. It loses members that leave. Its rule is applied anew
/// when workers join, and takes them in if it says so (GroupRule).
///
/// Each call is ordered by the job's rank 0, as a named call is, and ends in a meeting of all
/// members of the job: it costs a barrier of the job beside the collective of the group, and calls
/// of different groups run one after another. Other members need not call anything. Named calls are
/// not fused.
///
/// **Errors:** those of Collectives, on the members of the group; also kInvalidArgument if this
/// worker is not in the group, and kRootLost, on all members of the group, if a root has left it.
///
/// Any thread may use it.
class ELASTIC_API Group final : public Collectives {
 public:
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() override;

  /// \returns this worker's rank in the group; -1 if it is not in it, or is joining the job.
  int rank() const;
  /// \returns the number of members.
  int size() const;
  /// \returns the members, in the order of their ranks in the group.
  Contributors members() const;
  /// \returns its rule in words.
  const std::string& name() const;

  /// The group of some of this group's members. `rule` is applied to them as if they were the job.
  /// \returns the group, which lives as long as the context.
  Group& group(const GroupRule& rule);

 private:
  friend class Context;
  class Impl;
  Group(Context& context, std::unique_ptr<Impl> impl);
  runtime::ScopeUse scope() override;

  Context& context_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace elastic
