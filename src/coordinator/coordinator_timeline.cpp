// The times of named tensors, for the timeline: when each was submitted, ordered, run and
// complete.
#include <string>

#include "coordinator/coordinator.hpp"
#include "coordinator/group_names.hpp"

namespace elastic::coordinator {

namespace {

/// Without the number of a call or message: Texts has room for a bounded number of names.
std::string recorded_name(const OrderItem& order, const std::string& name) {
  return order.is_of_group() ? row_name(name) : name;
}

}  // namespace

void Coordinator::note_ordered(const OrderItem& order) {
  if (options_.timeline == nullptr || !options_.timeline->on()) return;
  const TimePoint now = Clock::now();
  for (const auto& request : *order.requests) {
    const auto found = pending_.find(request->name);
    if (found != pending_.end()) found->second.ordered = now;
  }
}

/// Names the operation that runs the order by its first tensor, for the flight recorder too.
void Coordinator::name_operation(const OrderItem& order) {
  if (options_.timeline == nullptr) return;
  const std::string& name = order.requests->front()->name;
  timeline::Texts& texts = options_.timeline->texts();
  // Each bucket comes here: the name of a tensor is not copied.
  const std::uint32_t number =
      order.is_of_group() ? texts.number_of(row_name(name)) : texts.number_of(name);
  lane_.trace().name_next(number, static_cast<std::uint32_t>(order.requests->size()));
}

/// Records the tensors of an order that is complete. Tensors that were ordered before the timeline
/// began are left out.
void Coordinator::record(const OrderItem& order, const Lane::Attempt& attempt) {
  if (options_.timeline == nullptr || !options_.timeline->on()) return;
  const TimePoint now = Clock::now();
  timeline::Event event = lane_.trace().latest_event();
  event.outcome = attempt.status.ok() ? timeline::Outcome::kDone : timeline::Outcome::kError;
  // A call of a group has the members and bytes of the operation.
  if (!order.is_of_group()) {
    event.members = static_cast<std::uint32_t>(attempt.contributors.size());
  }
  for (const auto& request : *order.requests) {
    const auto found = pending_.find(request->name);
    if (found == pending_.end() || found->second.ordered == TimePoint{}) continue;
    if (order.requests->size() > 1) event.bytes = request->bytes();
    if (order.is_of_group() && !found->second.group_outcome->error.ok()) {
      event.outcome = timeline::Outcome::kError;
      event.members = 0;
    }
    options_.timeline->record_tensor(recorded_name(order, request->name),
                                     {found->second.since, found->second.ordered, run_since_, now},
                                     event);
  }
}

}  // namespace elastic::coordinator
