#include "coordinator/ledger.hpp"

#include <utility>

namespace elastic::coordinator {

void Ledger::begin_at(std::uint64_t position) {
  if (std::exchange(joined_, true)) return;
  position_ = position;
}

void Ledger::enter(const LaneOrders& orders) {
  begin_at(orders.position);
  orders_ = orders;
  handed_over_ = orders.handover == LaneOrders::Handover::kNothing;
  spoiled_ = false;
}

Ledger::Step Ledger::next() const {
  if (!handed_over_) return Step::kHandOver;
  if (undelivered_) return Step::kDeliver;
  // Not an error at once: whoever completes an operation, in whatever way, must know that everybody
  // has the one before, or a member would fall behind by more than the one result that is kept.
  if (orders_.lost && position_ == orders_.position) return Step::kEndAsLost;
  return Step::kAttempt;
}

void Ledger::begun(std::string needs) {
  needs_ = std::move(needs);
}

void Ledger::completed() {
  ++position_;
  needs_.clear();
}

void Ledger::handed_over() {
  handed_over_ = true;
  if (orders_.handover != LaneOrders::Handover::kTake) return;
  completed();
  undelivered_ = true;
}

void Ledger::delivered() {
  undelivered_ = false;
}

void Ledger::spoiled() {
  spoiled_ = true;
}

}  // namespace elastic::coordinator
