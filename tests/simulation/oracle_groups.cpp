// The rules for calls of groups, as the oracle checks them.
#include <algorithm>
#include <string>
#include <vector>

#include "group_rules.hpp"
#include "oracle.hpp"

namespace elastic::simulation {

namespace {

std::vector<Placed> placed(const runtime::Roster& roster, const Scenario& scenario) {
  std::vector<Placed> members;
  for (const GroupMember& each : roster.members) {
    const Node node = node_of_id(each.id);
    members.push_back({node, scenario.host_of(node)});
  }
  return members;
}

bool has_members(const rendezvous::View& view, const std::vector<Placed>& members) {
  return std::ranges::equal(
      view.members, members, {},
      [](const rendezvous::Member& its) { return node_of(its.incarnation); }, &Placed::node);
}

}  // namespace

/// The contributors are those of the group that are members of the view, and each knows the same
/// group: found here from the members of the view in which they were made the same.
void Oracle::returned_in_group(Node worker, std::size_t group, const std::string& which,
                               const runtime::Roster& roster, const Outcome& outcome) {
  if (closed_) return;
  ++tally_.group_calls;
  const std::string what = incarnation_of(worker) + ", " + which;
  const std::vector<Placed> members = placed(roster, scenario_);
  // Before they are made the same, the rules are applied to the members of the view that admits
  // them.
  if (roster.generation != 0 && !any_view(roster.generation, [&](const rendezvous::View& view) {
        return has_members(view, members);
      })) {
    wrong(what + ": the rules are applied to workers that are not the members of generation " +
          std::to_string(roster.generation));
  }
  const Nodes chosen = group_of(group, members, worker);
  if (!contains(chosen, worker)) wrong(what + ": the worker is not in the group");
  check_agreement(named_, worker, which, outcome, which);
  if (outcome.error != Code::kOk) return;
  if (!any_view(outcome.generation, [&](const rendezvous::View& view) {
        return (members_of(view) & chosen) == outcome.contributors;
      })) {
    wrong(what + ": the contributors are not the members of the group in generation " +
          std::to_string(outcome.generation));
  }
}

}  // namespace elastic::simulation
