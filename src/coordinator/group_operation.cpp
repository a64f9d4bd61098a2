#include "coordinator/group_operation.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "base/hash.hpp"
#include "base/rank_list.hpp"
#include "collectives/backend/lost_root.hpp"

namespace elastic::coordinator {

std::string describe_group(const std::vector<int>& ranks) {
  return "in the group of " + rank_list({ranks.begin(), ranks.end()}) + ", numbered from 0";
}

std::vector<int> ranks_among(const Members& members, const std::vector<WorkerId>& workers) {
  std::vector<int> ranks;
  for (const WorkerId id : workers) {
    if (const int rank = members.rank_of(id); rank >= 0) ranks.push_back(rank);
  }
  std::ranges::sort(ranks);
  return ranks;
}

Members members_of_group(const Members& members, const std::vector<int>& ranks) {
  Members group;
  auto ids = std::make_shared<std::vector<WorkerId>>();
  group.generation = members.generation;
  group.rank = -1;
  for (const int rank : ranks) {
    const auto at = static_cast<std::size_t>(rank);
    if (rank == members.rank) group.rank = group.size();
    group.incarnations.push_back(members.incarnations[at]);
    group.synced.push_back(members.synced[at]);
    group.hosts.push_back(members.hosts[at]);
    ids->push_back((*members.ids)[at]);
  }
  group.ids = std::move(ids);
  return group;
}

GroupOperation::GroupOperation(GroupCall group, Members members, std::unique_ptr<Operation> theirs,
                               std::shared_ptr<GroupOutcome> outcome)
    : group_(std::move(group)),
      members_(std::move(members)),
      theirs_(std::move(theirs)),
      outcome_(std::move(outcome)) {
  if (!group_.mismatch.empty()) {
    refused_ = Status(Code::kMismatch, group_.mismatch, -1, members_.generation);
  } else if (theirs_->is_lost(members_)) {
    refused_ = Status(Code::kRootLost,
                      "the root is no member of the group; choose one that is, and call again", -1,
                      members_.generation);
  }
}

/// All ranks know the name and the ranks, and compare these at the end.
collectives::Call GroupOperation::call(const Members& /*members*/) {
  collectives::Call call;
  call.fingerprint.kind = static_cast<std::uint8_t>(collectives::Kind::kBarrier);
  if (theirs_ != nullptr) {
    const collectives::Call made = theirs_->call(members_);
    if (performs()) call = made;
    if (refused_.code() == Code::kRootLost) {
      call.fingerprint = collectives::lost_root_call(made.fingerprint.detail);
    }
  }
  call.group = group_.ranks;
  call.group_fingerprint = call.fingerprint;
  call.fingerprint = {};
  call.fingerprint.kind = static_cast<std::uint8_t>(collectives::Kind::kBarrier);
  call.fingerprint.detail =
      static_cast<std::uint32_t>(hash_of(std::as_bytes(std::span(group_.name))));
  return call;
}

void GroupOperation::pack(const Members& /*members*/, collectives::Payload& payload) {
  if (performs()) theirs_->pack(members_, payload);
}

void GroupOperation::unpack(const Members& /*members*/, const collectives::Payload& payload) {
  if (theirs_ == nullptr) return;
  outcome_->contributors = members_.contributors();
  outcome_->error = refused_;
  if (!refused_.ok()) return;
  if (payload.group && !payload.group->error.ok()) {
    outcome_->error = payload.group->error.within(describe_group(group_.ranks));
    return;
  }
  theirs_->unpack(members_, payload);
}

}  // namespace elastic::coordinator
