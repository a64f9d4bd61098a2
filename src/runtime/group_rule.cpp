#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/rank_list.hpp"
#include "elastic/error.hpp"
#include "elastic/group.hpp"
#include "runtime/applied_rule.hpp"

namespace elastic {

namespace {

using MemberList = std::span<const GroupMember>;

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, what);
}

MemberList::iterator member_of(MemberList members, WorkerId id) {
  return std::ranges::find(members, id, &GroupMember::id);
}

/// The rank of a member among those on its host.
std::ptrdiff_t local_rank(MemberList members, MemberList::iterator member) {
  return std::ranges::count(members.begin(), member, member->host, &GroupMember::host);
}

std::vector<WorkerId> on_host_of(MemberList members, WorkerId self) {
  std::vector<WorkerId> chosen;
  const auto own = member_of(members, self);
  for (const GroupMember& each : members) {
    if (own != members.end() && each.host == own->host) chosen.push_back(each.id);
  }
  return chosen;
}

std::vector<WorkerId> at_rank_on_host_of(MemberList members, WorkerId self) {
  std::vector<WorkerId> chosen;
  const auto own = member_of(members, self);
  for (auto each = members.begin(); each != members.end(); ++each) {
    if (own != members.end() && local_rank(members, each) == local_rank(members, own)) {
      chosen.push_back(each->id);
    }
  }
  return chosen;
}

/// Ranks in place of ids, say, would make an empty group. Some of the ids may be of workers that
/// are gone.
void check_ids(const std::string& rule, const std::vector<WorkerId>& chosen, MemberList members) {
  const auto is_member = [&](WorkerId id) { return member_of(members, id) != members.end(); };
  if (chosen.empty() || std::ranges::any_of(chosen, is_member)) return;
  refuse("the rule '" + rule + "' of a group returned " + std::to_string(chosen.front()) +
         (chosen.size() > 1 ? " and others" : "") +
         ", which is the id of no member: return ids of the members that the function is given");
}

}  // namespace

GroupRule GroupRule::per_host() {
  return {"per host", on_host_of};
}

GroupRule GroupRule::across_hosts() {
  return {"across hosts", at_rank_on_host_of};
}

GroupRule GroupRule::every(int step, int first) {
  if (step <= 0 || first < 0) {
    refuse("GroupRule::every: the step, " + std::to_string(step) +
           ", has to be positive, and the first rank, " + std::to_string(first) + ", not negative");
  }
  return {"every " + std::to_string(step) + " from " + std::to_string(first),
          [step, first](MemberList members, WorkerId /*self*/) {
            std::vector<WorkerId> chosen;
            for (auto at = static_cast<std::size_t>(first); at < members.size();
                 at += static_cast<std::size_t>(step)) {
              chosen.push_back(members[at].id);
            }
            return chosen;
          }};
}

GroupRule GroupRule::ranks(std::vector<int> ranks) {
  if (ranks.empty()) refuse("GroupRule::ranks: there is no rank; give one at least");
  std::ranges::sort(ranks);
  if (ranks.front() < 0) {
    refuse("GroupRule::ranks: " + std::to_string(ranks.front()) + " is no rank");
  }
  if (const auto twice = std::ranges::adjacent_find(ranks); twice != ranks.end()) {
    refuse("GroupRule::ranks: rank " + std::to_string(*twice) + " is there twice");
  }
  return {rank_list({ranks.begin(), ranks.end()}), [ranks](MemberList members, WorkerId /*self*/) {
            std::vector<WorkerId> chosen;
            for (const int rank : ranks) {
              const auto at = static_cast<std::size_t>(rank);
              if (at < members.size()) chosen.push_back(members[at].id);
            }
            return chosen;
          }};
}

GroupRule GroupRule::workers(std::vector<WorkerId> workers) {
  if (workers.empty()) refuse("GroupRule::workers: there is no worker; give one at least");
  std::string name = "workers";
  for (const WorkerId id : std::set(workers.begin(), workers.end())) {
    name += " " + std::to_string(id);
  }
  return {std::move(name), [workers = std::move(workers)](MemberList /*members*/,
                                                          WorkerId /*self*/) { return workers; }};
}

GroupRule GroupRule::by(std::string name, Choose choose) {
  if (name.empty()) refuse("GroupRule::by: a rule needs a name");
  if (!choose) refuse("GroupRule::by: the rule '" + name + "' needs a function that chooses");
  std::string whole = "by " + name;
  return {std::move(whole),
          [name = std::move(name), choose = std::move(choose)](MemberList members, WorkerId self) {
            std::vector<WorkerId> chosen = choose(members, self);
            check_ids(name, chosen, members);
            return chosen;
          }};
}

std::vector<GroupMember> GroupRule::choose(MemberList members, WorkerId self) const {
  const std::vector<WorkerId> ids = [&] {
    const runtime::AppliedRule applied;
    return choose_(members, self);
  }();
  const std::set<WorkerId> wanted(ids.begin(), ids.end());
  std::vector<GroupMember> chosen;
  std::ranges::copy_if(members, std::back_inserter(chosen),
                       [&](const GroupMember& each) { return wanted.contains(each.id); });
  return chosen;
}

}  // namespace elastic
