#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/status.hpp"
#include "benchmarks/job/rank_options.hpp"

namespace elastic::bench {

/// A job that a measurement starts.
struct MeasuredJob {
  int ranks = 1;
  bool encrypt = false;
  std::vector<std::string> arguments = {};  ///< of the ranks, after those of the command line
};

/// Starts the ranks of a measurement by elasticrun and waits for their end.
/// \returns the rows of their report.
Result<nlohmann::ordered_json> run_measured_job(const MeasuredJob& job, const RankOptions& options);

}  // namespace elastic::bench
