#include "coordinator/ordered_operation.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/join_name.hpp"
#include "coordinator/device_operation.hpp"
#include "coordinator/join_operation.hpp"
#include "coordinator/neutral_operation.hpp"

namespace elastic::coordinator {

namespace {

bool is_fetched_on_demand(const Submission& its) {
  return its.staged && its.staged->when() == device::Fetch::kOnDemand;
}

std::unique_ptr<Operation> host_allreduce(const OrderItem& order, const Submissions& pending) {
  std::vector<TensorView> tensors;
  std::vector<ConstTensorView> inputs;
  for (const auto& request : *order.requests) {
    const Submission& its = pending.at(request->name);
    tensors.insert(tensors.end(), its.tensors.begin(), its.tensors.end());
    if (its.inputs.empty()) {
      inputs.insert(inputs.end(), its.tensors.begin(), its.tensors.end());
    } else {
      inputs.insert(inputs.end(), its.inputs.begin(), its.inputs.end());
    }
  }
  const TensorRequest& first = *order.requests->front();
  return std::make_unique<AllreduceOperation>(std::move(inputs), std::move(tensors), first.op,
                                              std::vector<collectives::Wire>(), first.scale);
}

std::unique_ptr<Operation> device_operation_for(const OrderItem& order,
                                                const Submissions& pending) {
  std::vector<DeviceOperation::Part> parts;
  for (const auto& request : *order.requests) {
    const Submission& its = pending.at(request->name);
    parts.push_back({its.staged, its.tensors});
  }
  return device_allreduce(std::move(parts), order.requests->front()->op);
}

std::unique_ptr<Operation> group_operation_for(const OrderItem& order, const Submissions& pending,
                                               const Members& members) {
  const std::string& name = order.requests->front()->name;
  GroupCall call{name, order.group, order.mismatch};
  if (!std::ranges::binary_search(order.group, members.rank)) {
    return std::make_unique<GroupOperation>(std::move(call));
  }
  Members group = members_of_group(members, order.group);
  if (order.is_neutral) {
    auto neutral = order.is_mismatch() ? nullptr : neutral_operation(*order.requests);
    return std::make_unique<GroupOperation>(std::move(call), std::move(group), std::move(neutral),
                                            std::make_shared<GroupOutcome>());
  }
  const Submission& its = pending.at(name);
  std::unique_ptr<Operation> theirs = its.call.make(group);
  return std::make_unique<GroupOperation>(std::move(call), std::move(group), std::move(theirs),
                                          its.group_outcome);
}

}  // namespace

bool is_on_device(const OrderItem& order, const Submissions& pending) {
  if (order.is_of_group() || order.last_joined || order.is_mismatch() || order.is_neutral) {
    return false;
  }
  return std::ranges::any_of(*order.requests, [&](const auto& request) {
    const Submission& its = pending.at(request->name);
    return !its.call.make && is_fetched_on_demand(its);
  });
}

std::unique_ptr<Operation> operation_for(const OrderItem& order, const Submissions& pending,
                                         const Members& members) {
  if (order.is_of_group()) return group_operation_for(order, pending, members);
  if (order.last_joined) {
    const Submission& join = pending.at(kJoinName);
    return std::make_unique<JoinOperation>(*order.last_joined, join.last_joined);
  }
  if (order.is_mismatch()) return std::make_unique<MismatchOperation>(order.mismatch);
  if (order.is_neutral) return neutral_operation(*order.requests);
  const Submission& first = pending.at(order.requests->front()->name);
  if (first.call.make) return first.call.make(members);
  return is_on_device(order, pending) ? device_operation_for(order, pending)
                                      : host_allreduce(order, pending);
}

}  // namespace elastic::coordinator
