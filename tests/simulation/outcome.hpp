#pragma once

#include <cstdint>
#include <string>

#include "base/status.hpp"
#include "nodes.hpp"

namespace elastic::simulation {

/// How a call ended: whose contributions are in its result and in which generation, or in which
/// error.
struct Outcome {
  std::uint64_t generation = 0;
  Nodes contributors = 0;
  Code error = Code::kOk;
  bool operator==(const Outcome&) const = default;
};

}  // namespace elastic::simulation
