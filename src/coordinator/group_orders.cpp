#include "coordinator/group_orders.hpp"

#include <algorithm>
#include <utility>

namespace elastic::coordinator {

Status GroupOrders::submit(const GroupRequest& request) {
  if (Status valid = validate(request.request); !valid.ok()) return valid;
  if (own_.insert(request.request.name).second) return {};
  return Status(Code::kInvalidArgument,
                "call '" + request.request.name +
                    "' of a group is submitted again before it is complete; wait for it, or use "
                    "another name");
}

Result<std::optional<RunInGroup>> GroupOrders::submitted(RankRange from, GroupRequest request) {
  const std::string name = request.request.name;
  const int rank = from.first;
  const auto [entry, is_first] = submitted_.try_emplace(name);
  Submitted& call = entry->second;
  if (is_first) {
    call.first = std::move(request);
    call.first_rank = rank;
  } else if (call.mismatch.empty() && !(call.first == request)) {
    call.mismatch = "call '" + name + "' of a group: rank " + std::to_string(call.first_rank) +
                    " submitted " + describe(call.first) + "; rank " + std::to_string(rank) +
                    " submitted " + describe(request);
  }
  for (int each = from.first; each < from.end(); ++each) {
    const bool in_group = std::ranges::binary_search(call.first.ranks, each);
    if (in_group && call.ranks.insert(each).second) continue;
    return Status(Code::kProtocol, "rank " + std::to_string(each) + " submits call '" + name +
                                       (in_group ? "' of a group twice"
                                                 : "' of a group that it does not belong to"));
  }
  if (call.ranks.size() < call.first.ranks.size()) return std::optional<RunInGroup>();
  std::optional<RunInGroup> order(RunInGroup{std::move(call.first), std::move(call.mismatch)});
  submitted_.erase(entry);
  return order;
}

Status GroupOrders::ordered(const RunInGroup& order, int rank) const {
  const std::string& name = order.call.request.name;
  if (!std::ranges::binary_search(order.call.ranks, rank) || own_.contains(name)) return {};
  return Status(Code::kProtocol,
                "call '" + name + "' of a group is to be run, and was not submitted here");
}

void GroupOrders::restart() {
  own_.clear();
  submitted_.clear();
}

}  // namespace elastic::coordinator
