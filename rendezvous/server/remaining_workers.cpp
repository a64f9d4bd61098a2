#include "rendezvous/server/remaining_workers.hpp"

#include <algorithm>

namespace elastic::rendezvous {

std::int64_t RemainingWorkers::count_leaving() const {
  std::int64_t sum = 0;
  for (const auto& [host, members] : leaving) sum += members;
  return sum;
}

RemainingWorkers remaining_workers(const std::vector<PlacedMember>& members,
                                   const std::vector<WorkerPlace>& places, bool joinable) {
  struct Count {
    std::int64_t staying = 0;
    std::int64_t leaving = 0;
  };
  std::map<int, Count> by_launcher;
  for (const PlacedMember& its : members) {
    Count& there = by_launcher[its.launcher];
    ++(its.leaves ? there.leaving : there.staying);
  }
  RemainingWorkers result;
  std::int64_t room = 0;
  for (const WorkerPlace& place : places) {
    const auto found = by_launcher.find(place.launcher);
    const Count there = found == by_launcher.end() ? Count() : found->second;
    if (found != by_launcher.end()) by_launcher.erase(found);
    const std::int64_t staying = std::min(there.staying, place.slots);
    const std::int64_t surplus = there.staying - staying;
    result.count += staying;
    result.surplus += surplus;
    if (there.leaving + surplus > 0) result.leaving[place.host] += there.leaving + surplus;
    if (place.open) {
      // The slot of a member that leaves is in use until then.
      room += std::max<std::int64_t>(0, place.slots - there.staying - there.leaving);
    }
  }
  for (const auto& [launcher, there] : by_launcher) {
    result.count += there.staying;
    if (there.leaving > 0) result.leaving[""] += there.leaving;
  }
  if (joinable) result.count += std::min(result.surplus, room);
  return result;
}

std::string leaving_text(const RemainingWorkers& remaining) {
  std::string text;
  for (const auto& [host, members] : remaining.leaving) {
    text += (text.empty() ? "; leaving already: " : ", ") + std::to_string(members) +
            (host.empty() ? " without a launcher" : " of " + host);
  }
  return text;
}

}  // namespace elastic::rendezvous
