#include "coordinator/group_orders.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "coordinator/group_names.hpp"

namespace elastic::coordinator {

Status GroupOrders::submit(const GroupRequest& request) {
  if (Status valid = validate(request.request); !valid.ok()) return valid;
  if (own_.insert(request.request.name).second) return {};
  return Status(Code::kInvalidArgument,
                "call " + user_name(request.request.name) +
                    " is submitted again before it is complete; wait for it, or use another name");
}

bool GroupOrders::Submitted::is_complete_but_for(const JoinedRanks& joined) const {
  return std::ranges::all_of(first.ranks, [&](int rank) {
    return ranks.contains(rank) || joined.has(static_cast<std::size_t>(rank));
  });
}

RunInGroup GroupOrders::order_of(Submitted call, const JoinedRanks& joined) {
  const bool whole = call.ranks.size() == call.first.ranks.size();
  const TensorRequest& request = call.first.request;
  if (!whole && call.mismatch.empty() && !goes_on_without_joined(request.kind)) {
    call.mismatch = "call " + joined.refusal(request, call.first.ranks);
  }
  return {std::move(call.first), std::move(call.mismatch)};
}

Result<std::optional<RunInGroup>> GroupOrders::submitted(RankRange from, GroupRequest request,
                                                         const JoinedRanks& joined) {
  const std::string name = request.request.name;
  const int rank = from.first;
  const auto [entry, is_first] = submitted_.try_emplace(name);
  Submitted& call = entry->second;
  if (is_first) {
    call.first = std::move(request);
    call.first_rank = rank;
  } else if (call.mismatch.empty() && !(call.first == request)) {
    const std::uint8_t kind = call.first.request.kind;
    call.mismatch =
        (kind == request.request.kind ? describe_call(kind, name) : "call " + user_name(name)) +
        ": rank " + std::to_string(call.first_rank) + " submitted " + describe(call.first) +
        "; rank " + std::to_string(rank) + " submitted " + describe(request);
  }
  for (int each = from.first; each < from.end(); ++each) {
    const bool in_group = std::ranges::binary_search(call.first.ranks, each);
    if (in_group && call.ranks.insert(each).second) continue;
    return Status(Code::kProtocol, "rank " + std::to_string(each) + " submits call '" + name +
                                       (in_group ? "' of a group twice"
                                                 : "' of a group that it does not belong to"));
  }
  if (!call.is_complete_but_for(joined)) return std::optional<RunInGroup>();
  std::optional<RunInGroup> order(order_of(std::move(call), joined));
  submitted_.erase(entry);
  return order;
}

std::vector<RunInGroup> GroupOrders::complete_but_for(const JoinedRanks& joined) {
  std::vector<RunInGroup> orders;
  for (auto entry = submitted_.begin(); entry != submitted_.end();) {
    const auto at = entry++;
    if (!at->second.is_complete_but_for(joined)) continue;
    orders.push_back(order_of(std::move(at->second), joined));
    submitted_.erase(at);
  }
  return orders;
}

Status GroupOrders::ordered(const RunInGroup& order, int rank, bool has_joined) const {
  const std::string& name = order.call.request.name;
  if (has_joined) return {};
  if (!std::ranges::binary_search(order.call.ranks, rank) || own_.contains(name)) return {};
  return Status(Code::kProtocol,
                "call '" + name + "' of a group is to be run, and was not submitted here");
}

void GroupOrders::restart() {
  own_.clear();
  submitted_.clear();
}

}  // namespace elastic::coordinator
