#pragma once

#include <bitset>
#include <string>

#include "elastic/results.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::simulation {

/// A process: worker n of the run, or the server.
using Node = unsigned;

/// The largest runs begin with 256 workers; others join, and those that were evicted come again.
inline constexpr Node kMostWorkers = 511;
/// As many as the small runs have, which are to cost little.
inline constexpr Node kMostOfSmall = 95;
inline constexpr Node kServer = kMostWorkers;

/// A set of them, a bit each.
using Nodes = std::bitset<kMostWorkers + 1>;

inline Nodes only(Node node) {
  return Nodes().set(node);
}
inline bool contains(const Nodes& nodes, Node node) {
  return nodes.test(node);
}

/// Worker n's incarnation is "wn".
inline std::string incarnation_of(Node worker) {
  return "w" + std::to_string(worker);
}
inline Node node_of(const std::string& incarnation) {
  Node node = 0;
  for (std::size_t i = 1; i < incarnation.size(); ++i) {
    node = node * 10 + static_cast<Node>(incarnation[i] - '0');
  }
  return node;
}
/// The id of a node's worker, as in Contributors.
constexpr WorkerId id_of(Node worker) {
  return worker + 1;
}
constexpr Node node_of_id(WorkerId id) {
  return static_cast<Node>(id - 1);
}
inline Nodes members_of(const rendezvous::View& view) {
  Nodes nodes;
  for (const rendezvous::Member& member : view.members) nodes |= only(node_of(member.incarnation));
  return nodes;
}

}  // namespace elastic::simulation
