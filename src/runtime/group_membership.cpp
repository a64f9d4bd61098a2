#include "runtime/group_membership.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/hash.hpp"
#include "coordinator/group_names.hpp"
#include "coordinator/group_operation.hpp"

namespace elastic::runtime {

namespace {

/// The same for the same workers in another order.
std::uint64_t hash_of_workers(std::vector<WorkerId> workers) {
  std::ranges::sort(workers);
  return hash_of(std::as_bytes(std::span(workers)));
}

std::vector<GroupMember> chosen_by(std::span<const GroupRule> rules,
                                   std::vector<GroupMember> members, WorkerId self) {
  for (const GroupRule& rule : rules) members = rule.choose(members, self);
  return members;
}

}  // namespace

std::string group_name(std::span<const GroupRule> rules) {
  std::string name;
  for (const GroupRule& rule : rules) name += (name.empty() ? "" : ", ") + rule.name();
  return name;
}

std::string group_mark(std::span<const GroupRule> rules) {
  constexpr std::size_t kShownBytes = 48;
  std::string all;
  for (const GroupRule& rule : rules) all += fmt::format("{}:{}", rule.name().size(), rule.name());
  std::string shown = group_name(rules);
  if (shown.size() > kShownBytes) {
    std::size_t end = kShownBytes;
    while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xC0U) == 0x80U) --end;
    shown = shown.substr(0, end) + "…";
  }
  return fmt::format("{}~{:08x}", shown, hash_of(std::as_bytes(std::span(all))) >> 32U);
}

GroupMembership::GroupMembership(Rules rules)
    : rules_(std::move(rules)), mark_(group_mark(rules_)) {}

/// Calls without a name are counted for each set of members: a worker that is in it has made all of
/// them, whichever rosters it has seen. After a join they are counted from 0, as a member that had
/// joined has not made those of the others.
void GroupMembership::renew(const std::shared_ptr<const Roster>& roster, WorkerId self,
                            std::uint64_t joins) {
  if (joins != joins_) {
    joins_ = joins;
    calls_.clear();
  }
  if (roster == roster_) return;
  auto workers = std::make_shared<std::vector<WorkerId>>();
  for (const GroupMember& each : chosen_by(rules_, roster->members, self)) {
    workers->push_back(each.id);
  }
  prefix_ = coordinator::group_prefix(mark_, hash_of_workers(*workers));
  present_.reset();
  workers_ = std::move(workers);
  roster_ = roster;
}

std::shared_ptr<const coordinator::Members> GroupMembership::present(
    const coordinator::Members& view) {
  if (!present_ || present_->generation != view.generation) {
    present_ = std::make_shared<const coordinator::Members>(
        coordinator::members_of_group(view, coordinator::ranks_among(view, *workers_)));
  }
  return present_;
}

std::string GroupMembership::name_call(const std::string& name) {
  return name.empty() ? coordinator::name_in_group(prefix_, ++calls_[prefix_])
                      : coordinator::name_in_group(prefix_, name);
}

void GroupMembership::forget_call(const std::string& name) {
  const auto calls = calls_.find(prefix_);
  if (calls == calls_.end() || calls->second == 0) return;
  if (name == coordinator::name_in_group(prefix_, calls->second)) --calls->second;
}

}  // namespace elastic::runtime
