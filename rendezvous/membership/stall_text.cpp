#include "rendezvous/membership/stall_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <utility>

#include "base/join_name.hpp"
#include "base/rank_list.hpp"

namespace elastic::rendezvous {
namespace {

using Ranks = std::vector<std::size_t>;

/// Members that are in the same call.
struct Group {
  std::string call;
  Ranks ranks;
};

/// Groups beyond this number are summarised.
constexpr std::size_t kMostGroups = 4;

/// The call of a member. `lane` comes first: a named tensor may be under way in the background.
std::string call_of(const Heartbeat& member, std::size_t lane) {
  if (std::string call = call_in(member, lane); !call.empty()) return call;
  for (std::size_t other = 0; other < member.calls->size(); ++other) {
    if (std::string call = call_in(member, other); !call.empty()) return call;
  }
  return {};
}

/// Members of an earlier release say the name alone.
std::string named_call(const CallUnderWay& its) {
  const std::string text = its.text.value_or("named call '" + its.tensor + "'");
  if (!its.ranks) return text;
  return text + " of " + rank_list(ranks_in(its, its.ranks->empty() ? 0 : its.ranks->back() + 1));
}

std::string in_no_call(const Ranks& ranks) {
  return rank_list(ranks) + (ranks.size() == 1 ? " is in no call" : " are in no call");
}

/// "rank 1 has not entered allreduce #21 for 30 s; it has completed 20 calls"
std::string missing_text(const std::string& call, const Ranks& missing, bool named,
                         std::uint64_t completed, Duration lasted) {
  const bool one = missing.size() == 1;
  std::string text = rank_list(missing) + (one ? " has not entered " : " have not entered ") +
                     call + " for " + seconds_text(lasted) + "; " + (one ? "it " : "they ");
  if (named) return text + (one ? "is" : "are") + " in no call";
  return text + (one ? "has" : "have") + " completed " + std::to_string(completed) +
         (completed == 1 ? " call" : " calls");
}

/// "rank 0 waits in named allreduce 'grad', rank 1 in allreduce #21, for 30 s"
std::string waiting_text(const std::vector<Group>& groups, Duration lasted) {
  std::string text;
  for (std::size_t i = 0; i < std::min(groups.size(), kMostGroups); ++i) {
    const Group& group = groups[i];
    const char* const waits = i > 0 ? " in " : group.ranks.size() == 1 ? " waits in " : " wait in ";
    text += (i > 0 ? ", " : "") + rank_list(group.ranks) + waits + group.call;
  }
  if (groups.size() > kMostGroups) text += ", and others elsewhere";
  return text + ", for " + seconds_text(lasted);
}

}  // namespace

std::string call_in(const Heartbeat& member, std::size_t lane) {
  const CallUnderWay& its = member.calls->at(lane);
  if (its.tensor == kJoinName) return "join";
  if (!its.tensor.empty()) return named_call(its);
  if (its.kind.empty()) return {};
  return its.kind + " #" + std::to_string(member.positions.at(lane) + 1);
}

std::vector<std::size_t> ranks_in(const CallUnderWay& call, std::size_t members) {
  Ranks ranks;
  if (!call.ranks) {
    ranks.resize(members);
    std::iota(ranks.begin(), ranks.end(), std::size_t{0});
    return ranks;
  }
  for (std::size_t i = 0; i + 1 < call.ranks->size(); i += 2) {
    const std::uint64_t last = std::min<std::uint64_t>((*call.ranks)[i + 1] + 1, members);
    for (std::uint64_t rank = (*call.ranks)[i]; rank < last; ++rank) ranks.push_back(rank);
  }
  return ranks;
}

std::string stall_text(const std::vector<const Heartbeat*>& members, const Ranks& ranks,
                       std::size_t lane, Duration lasted) {
  std::vector<Group> groups;
  Ranks missing;
  bool named = false;
  for (const std::size_t rank : ranks) {
    const std::string call = call_of(*members[rank], lane);
    named = named || !members[rank]->calls->at(lane).tensor.empty();
    if (call.empty()) {
      missing.push_back(rank);
      continue;
    }
    const auto found = std::find_if(groups.begin(), groups.end(),
                                    [&](const Group& group) { return group.call == call; });
    if (found == groups.end()) {
      groups.push_back({call, {rank}});
    } else {
      found->ranks.push_back(rank);
    }
  }
  if (groups.size() == 1 && !missing.empty()) {
    return missing_text(groups.front().call, missing, named,
                        members[missing.front()]->positions.at(lane), lasted);
  }
  return waiting_text(groups, lasted) + (missing.empty() ? "" : "; " + in_no_call(missing));
}

std::string seconds_text(Duration duration) {
  constexpr double kWithTenths = 9.95;
  const double seconds = std::chrono::duration<double>(duration).count();
  char text[32];
  std::snprintf(text, sizeof text, seconds < kWithTenths ? "%.1f s" : "%.0f s", seconds);
  return text;
}

}  // namespace elastic::rendezvous
