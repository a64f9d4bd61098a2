#include "coordinator/lane_view.hpp"

#include <algorithm>

namespace elastic::coordinator {

int Members::rank_of(const std::string& incarnation) const {
  const auto found = std::find(incarnations.begin(), incarnations.end(), incarnation);
  return found == incarnations.end() ? -1 : static_cast<int>(found - incarnations.begin());
}

int Members::first_synced() const {
  const auto found = std::find(synced.begin(), synced.end(), true);
  return found == synced.end() ? 0 : static_cast<int>(found - synced.begin());
}

namespace {
bool contains(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}
}  // namespace

bool LaneView::gives() const {
  return contains(handover.givers, members->rank);
}

bool LaneView::takes() const {
  return contains(handover.takers, members->rank);
}

LaneOrders LaneView::orders() const {
  using Handover = LaneOrders::Handover;
  const Handover mine = takes() ? Handover::kTake : gives() ? Handover::kGive : Handover::kNothing;
  return {generation(), position, mine, lost};
}

}  // namespace elastic::coordinator
