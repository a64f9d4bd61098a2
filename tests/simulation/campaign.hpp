#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mutation.hpp"
#include "tally.hpp"

namespace elastic::simulation {

/// Runs of many seeds.
struct Campaign {
  std::uint64_t first_seed = 1;
  std::uint64_t seeds = 10000;
  unsigned jobs = 1;  ///< threads
  Mutation mutation = Mutation::kNone;
  bool large = false;  ///< all runs; see Scenario
};

struct Findings {
  struct Failure {
    std::uint64_t seed = 0;
    std::string wrong;  ///< a line for each thing
  };
  Tally tally;
  std::vector<Failure> failures;  ///< by seed
};

Findings run(const Campaign& campaign);

}  // namespace elastic::simulation
