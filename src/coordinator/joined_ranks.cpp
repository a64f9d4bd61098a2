#include "coordinator/joined_ranks.hpp"

#include <algorithm>

#include "base/rank_list.hpp"
#include "coordinator/group_names.hpp"

namespace elastic::coordinator {

void JoinedRanks::restart(std::size_t ranks) {
  joined_at_.assign(ranks, std::nullopt);
  count_ = 0;
  last_ = -1;
}

Status JoinedRanks::add(int rank, std::uint64_t position) {
  const auto at = static_cast<std::size_t>(rank);
  if (rank < 0 || at >= joined_at_.size() || joined_at_[at]) {
    return Status(Code::kProtocol, "rank " + std::to_string(rank) + " joins twice, or is no rank");
  }
  joined_at_[at] = position;
  ++count_;
  if (last_ < 0 || *joined_at_[static_cast<std::size_t>(last_)] <= position) last_ = rank;
  return {};
}

std::string JoinedRanks::refusal(const TensorRequest& request,
                                 const std::vector<int>& among) const {
  std::vector<std::size_t> ranks;
  for (std::size_t rank = 0; rank < joined_at_.size(); ++rank) {
    const bool makes = among.empty() || std::ranges::binary_search(among, static_cast<int>(rank));
    if (joined_at_[rank] && makes) ranks.push_back(rank);
  }
  return user_name(request.name) + " (" + describe(request) + "): " + rank_list(ranks) +
         (ranks.size() == 1 ? " has" : " have") +
         " called join, and only named allreduces and barriers go on without data of " +
         (ranks.size() == 1 ? "that rank" : "those ranks") +
         "; make this call before any rank calls join, or after all have returned from it";
}

}  // namespace elastic::coordinator
