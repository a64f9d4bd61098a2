#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/status.hpp"
#include "benchmarks/rank_options.hpp"

namespace elastic::bench {

/// A job of its own within a measurement.
struct MeasuredJob {
  int ranks = 1;
  bool encrypt = false;
  std::vector<std::string> arguments = {};  ///< of the ranks, after those that were typed
};

/// Starts the ranks of `options`' subcommand with elasticrun and waits for their end; returns the
/// rows of the report.
Result<nlohmann::ordered_json> run_measured_job(const MeasuredJob& job, const RankOptions& options);

}  // namespace elastic::bench
