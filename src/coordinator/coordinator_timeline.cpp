// The times of named tensors, for the timeline: when each was submitted, ordered, run and
// complete.
#include <string_view>

#include "coordinator/coordinator.hpp"

namespace elastic::coordinator {

namespace {

/// The number of a group's call without a name, or of a message, is left out: Texts has room for a
/// bounded number of names.
std::string_view recorded_name(const OrderItem& order) {
  const std::string_view name = order.requests->front()->name;
  return order.is_of_group() ? name.substr(0, name.rfind('#')) : name;
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
  lane_.trace().name_next(options_.timeline->texts().number_of(recorded_name(order)),
                          static_cast<std::uint32_t>(order.requests->size()));
}

/// Records the tensors of an order that is complete. Tensors that were ordered before the timeline
/// began are left out.
void Coordinator::record(const OrderItem& order, const Lane::Attempt& attempt) {
  if (options_.timeline == nullptr || !options_.timeline->on()) return;
  const TimePoint now = Clock::now();
  timeline::Event event = lane_.trace().latest_event();
  event.outcome = attempt.status.ok() ? timeline::Outcome::kDone : timeline::Outcome::kError;
  event.members = static_cast<std::uint32_t>(attempt.contributors.size());
  for (const auto& request : *order.requests) {
    const auto found = pending_.find(request->name);
    if (found == pending_.end() || found->second.ordered == TimePoint{}) continue;
    event.bytes = request->bytes();
    options_.timeline->record_tensor(
        request->name, {found->second.since, found->second.ordered, run_since_, now}, event);
  }
}

}  // namespace elastic::coordinator
