#pragma once

#include <cstdint>
#include <string>

#include "base/status.hpp"
#include "elastic/results.hpp"
#include "nodes.hpp"

namespace elastic::simulation {

/// How a call ended: whose contributions are in its result and in which generation, or in which
/// error.
struct Outcome {
  std::uint64_t generation = 0;
  Nodes contributors{};
  Code error = Code::kOk;
  std::string text = {};  ///< of the error, where it is the same everywhere
  bool operator==(const Outcome&) const = default;
};

inline Nodes nodes_of(const Contributors& contributors) {
  Nodes nodes;
  for (const WorkerId id : contributors.workers()) nodes |= only(node_of_id(id));
  return nodes;
}

inline Outcome outcome_of(const Result<Contributors>& result) {
  // An error's generation is that of the view in which this worker met it.
  if (!result.ok()) return {0, {}, result.status().code()};
  return {result.value().generation(), nodes_of(result.value()), Code::kOk};
}

}  // namespace elastic::simulation
