#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "benchmarks/swarm/swarm_options.hpp"

namespace elastic::bench {

/// The results of one run; times are in seconds.
struct SwarmTimes {
  int workers = 0;
  double form_s = 0;            ///< from the start of the workers until all are in one view
  double idle_cpu_percent = 0;  ///< what the server needs of one core while nothing happens
  double death_s = 0;           ///< from the death of one until all others are in a view without it
  double death_server_s = 0;    ///< of one core, for the server in that time
  double bytes_per_member_death = 0;  ///< that each of the others received meanwhile
  int deaths = 0;
  double deaths_s = 0;  ///< as `death_s`, for so many at once
  std::size_t deaths_rounds = 0;
  std::size_t deaths_views = 0;
  double server_return_s = 0;  ///< from the server's death until all are back and it can decide
  std::size_t evicted = 0;     ///< did not come back in the server's opinion
  int joiners = 0;
  double join_s = 0;  ///< from the start of the joiners until all are in one view
};

/// Leads a swarm through all that is measured.
Result<SwarmTimes> measure_swarm(const SwarmOptions& options);

}  // namespace elastic::bench
