#include "group_rules.hpp"

#include <algorithm>
#include <functional>
#include <span>

namespace elastic::simulation {

namespace {

/// For the two members next to each other in rank order.
std::vector<WorkerId> pair_of(std::span<const GroupMember> members, WorkerId self) {
  const auto own = std::ranges::find(members, self, &GroupMember::id) - members.begin();
  std::vector<WorkerId> pair;
  for (std::size_t at = 0; at < members.size(); ++at) {
    if (static_cast<std::ptrdiff_t>(at) / 2 == own / 2) pair.push_back(members[at].id);
  }
  return pair;
}

using Keeps = std::function<bool(std::size_t at)>;

std::vector<Placed> only_where(const std::vector<Placed>& members, const Keeps& keeps) {
  std::vector<Placed> kept;
  for (std::size_t at = 0; at < members.size(); ++at) {
    if (keeps(at)) kept.push_back(members[at]);
  }
  return kept;
}

std::size_t place_of(const std::vector<Placed>& members, Node self) {
  return static_cast<std::size_t>(std::ranges::find(members, self, &Placed::node) -
                                  members.begin());
}

/// How many members before this one are on its host.
std::size_t place_on_host(const std::vector<Placed>& members, std::size_t at) {
  std::size_t before = 0;
  for (std::size_t i = 0; i < at; ++i) before += members[i].host == members[at].host ? 1U : 0U;
  return before;
}

std::vector<Placed> on_host_of(const std::vector<Placed>& members, std::size_t own) {
  return only_where(members, [&](std::size_t at) { return members[at].host == members[own].host; });
}

std::vector<Placed> chosen(std::size_t group, const std::vector<Placed>& members, Node self) {
  const std::size_t own = place_of(members, self);
  if (own == members.size()) return {};
  switch (group) {
    case 0:
      return only_where(members, [](std::size_t at) { return at % 2 == 0; });
    case 1:
      return only_where(members, [](std::size_t at) { return at % 3 == 1; });
    case 2:
      return on_host_of(members, own);
    case 3:
      return only_where(members, [&](std::size_t at) {
        return place_on_host(members, at) == place_on_host(members, own);
      });
    case 4:
      return only_where(members, [](std::size_t at) { return at < 2 || at == 3; });
    case 5:
      return only_where(members, [&](std::size_t at) {
        return members[at].node == 0 || members[at].node == 2 || members[at].node == 5;
      });
    case 6:
      return only_where(members, [&](std::size_t at) { return at / 2 == own / 2; });
    case 7: {
      const std::vector<Placed> host = on_host_of(members, own);
      return only_where(host, [](std::size_t at) { return at % 2 == 0; });
    }
    default: {
      const auto even = only_where(members, [](std::size_t at) { return at % 2 == 0; });
      return only_where(even, [](std::size_t at) { return at == 0 || at == 2; });
    }
  }
}

}  // namespace

std::vector<GroupRule> group_rules(std::size_t group) {
  switch (group) {
    case 0:
      return {GroupRule::every(2)};
    case 1:
      return {GroupRule::every(3, 1)};
    case 2:
      return {GroupRule::per_host()};
    case 3:
      return {GroupRule::across_hosts()};
    case 4:
      return {GroupRule::ranks({0, 1, 3})};
    case 5:
      return {GroupRule::workers({id_of(5), id_of(0), id_of(2)})};
    case 6:
      return {GroupRule::by("pairs", pair_of)};
    case 7:
      return {GroupRule::per_host(), GroupRule::every(2)};
    default:
      return {GroupRule::every(2), GroupRule::ranks({0, 2})};
  }
}

Nodes group_of(std::size_t group, const std::vector<Placed>& members, Node self) {
  Nodes nodes;
  for (const Placed& each : chosen(group, members, self)) nodes |= only(each.node);
  return nodes;
}

}  // namespace elastic::simulation
