#include "training/work_assignment.hpp"

#include <algorithm>

namespace elastic::training {
namespace {

/// Where the block of `member` begins, of `count` things distributed to `members`.
std::size_t block_begin(std::size_t member, std::size_t count, std::size_t members) {
  return member * (count / members) + std::min(member, count % members);
}

}  // namespace

WorkAssignment::WorkAssignment(std::size_t count, std::span<const WorkerId> members)
    : list_(count) {
  std::vector<VirtualWorker*> all;
  for (VirtualWorker& one : list_) all.push_back(&one);
  assign(all, members);
}

std::vector<std::size_t> WorkAssignment::of(WorkerId member) const {
  std::vector<std::size_t> found;
  for (std::size_t index = 0; index < list_.size(); ++index) {
    if (list_[index].open && list_[index].member == member) found.push_back(index);
  }
  return found;
}

std::size_t WorkAssignment::complete(std::span<const WorkerId> contributors) {
  std::vector<VirtualWorker*> missing;
  for (VirtualWorker& one : list_) {
    if (!one.open) continue;
    if (std::ranges::find(contributors, one.member) != contributors.end()) {
      one.open = false;
    } else {
      missing.push_back(&one);
    }
  }
  assign(missing, contributors);
  return missing.size();
}

void WorkAssignment::reopen() {
  for (VirtualWorker& one : list_) one.open = true;
}

void WorkAssignment::assign(const std::vector<VirtualWorker*>& those,
                            std::span<const WorkerId> members) {
  for (std::size_t member = 0; member < members.size(); ++member) {
    const std::size_t end = block_begin(member + 1, those.size(), members.size());
    for (std::size_t at = block_begin(member, those.size(), members.size()); at < end; ++at) {
      those[at]->member = members[member];
    }
  }
}

}  // namespace elastic::training
