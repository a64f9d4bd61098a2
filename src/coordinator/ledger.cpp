#include "coordinator/ledger.hpp"

#include <utility>

namespace elastic::coordinator {

void Ledger::begin_at(std::uint64_t position) {
  if (std::exchange(joined_, true)) return;
  position_ = position;
}

Status Ledger::enter(const LaneOrders& orders) {
  const std::uint64_t to_take = orders.role == HandoverRole::kTaker ? 1 : 0;
  if (joined_ && position_ + to_take != orders.position) {
    return Status(Code::kInternal,
                  "view " + std::to_string(orders.generation) + " goes on at operation " +
                      std::to_string(orders.position) + ", but this worker has completed " +
                      std::to_string(position_) +
                      (to_take == 1 ? " and is to take the result of one" : "") +
                      "; report this as a defect of elastic",
                  -1, orders.generation);
  }
  if (joined_ && orders.generation <= orders_.generation) {
    return Status(Code::kInternal,
                  "view " + std::to_string(orders.generation) + " comes after view " +
                      std::to_string(orders_.generation) + "; report this as a defect of elastic",
                  -1, orders.generation);
  }
  begin_at(orders.position);
  orders_ = orders;
  handed_over_ = orders.role == HandoverRole::kNone;
  spoiled_ = false;
  // All members have completed the operation, so no member can replay it.
  if (!orders.has_takers) unsettled_ = false;
  return {};
}

Ledger::Step Ledger::next() const {
  if (!handed_over_) return Step::kHandOver;
  if (undelivered_) return unsettled_ ? Step::kSettle : Step::kDeliver;
  // The lost operation ends after a barrier, not at once. A rank that completes an operation must
  // know that every rank has completed the one before: otherwise a member could fall behind by more
  // than the one kept result.
  if (orders_.lost && position_ == orders_.position) return Step::kEndAsLost;
  return Step::kAttempt;
}

void Ledger::begun(std::string needs) {
  needs_ = std::move(needs);
  begun_ = true;
}

void Ledger::completed() {
  ++position_;
  needs_.clear();
  begun_ = false;
}

void Ledger::completed_in_error() {
  completed();
  undelivered_ = true;
  unsettled_ = true;
}

void Ledger::settled() {
  unsettled_ = false;
}

void Ledger::handed_over(bool error) {
  handed_over_ = true;
  if (orders_.role != HandoverRole::kTaker) return;
  completed();
  undelivered_ = true;
  unsettled_ = error;
}

void Ledger::delivered() {
  undelivered_ = false;
}

void Ledger::spoiled() {
  spoiled_ = true;
}

}  // namespace elastic::coordinator
