#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "benchmarks/swarm/swarm_phases.hpp"

namespace elastic::bench {

/// For people: a line for each phase.
std::string table_of(const SwarmTimes& times);

/// The row of a report.
nlohmann::ordered_json row_of(const SwarmTimes& times);

}  // namespace elastic::bench
