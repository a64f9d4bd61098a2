#pragma once

#include <cstddef>
#include <vector>

#include "elastic/group.hpp"
#include "nodes.hpp"

namespace elastic::simulation {

/// The groups that programs call: by ranks, workers, hosts and functions, overlapping and nested.
inline constexpr std::size_t kGroupRules = 9;

/// The rules of a group, as a program gives them.
std::vector<GroupRule> group_rules(std::size_t group);

/// A member of the job, for the oracle.
struct Placed {
  Node node = 0;
  Node host = 0;
};

/// Those that belong to the group of `self`, found without the product's rules. `members`: those to
/// which the rules are applied, in rank order.
Nodes group_of(std::size_t group, const std::vector<Placed>& members, Node self);

}  // namespace elastic::simulation
