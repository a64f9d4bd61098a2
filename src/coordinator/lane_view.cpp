#include "coordinator/lane_view.hpp"

#include <algorithm>

namespace elastic::coordinator {

int Members::rank_of(const std::string& incarnation) const {
  const auto found = std::find(incarnations.begin(), incarnations.end(), incarnation);
  return found == incarnations.end() ? -1 : static_cast<int>(found - incarnations.begin());
}

int Members::rank_of(WorkerId worker) const {
  const auto found = std::find(ids->begin(), ids->end(), worker);
  return found == ids->end() ? -1 : static_cast<int>(found - ids->begin());
}

std::vector<int> Members::ranks_of(const std::vector<std::string>& of) const {
  std::vector<int> ranks;
  for (const std::string& incarnation : of) ranks.push_back(rank_of(incarnation));
  return ranks;
}

collectives::Backend::HandoverPairs Members::handover_pairs(
    const std::vector<std::string>& holders, const std::vector<std::string>& takers) const {
  collectives::Backend::HandoverPairs result;
  for (std::size_t i = 0; i < takers.size(); ++i) {
    result.takers.push_back(rank_of(takers[i]));
    result.senders.push_back(rank_of(holders[i % holders.size()]));
  }
  return result;
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

bool LaneView::sends() const {
  return contains(handover.senders, members->rank);
}

bool LaneView::takes() const {
  return contains(handover.takers, members->rank);
}

LaneOrders LaneView::orders() const {
  const HandoverRole role = takes()   ? HandoverRole::kTaker
                            : sends() ? HandoverRole::kSender
                                      : HandoverRole::kNone;
  return {generation(), position, role, lost, !handover.takers.empty()};
}

std::vector<int> LaneView::ranks_in_call(std::uint64_t done) const {
  std::vector<int> ranks;
  const bool begun_here = done >= position;
  for (int rank = 0; rank < members->size(); ++rank) {
    if (begun_here || contains(holders, rank) || contains(handover.senders, rank) ||
        contains(handover.takers, rank)) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

}  // namespace elastic::coordinator
