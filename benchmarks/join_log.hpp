#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/status.hpp"

namespace elastic::bench {

/// What one worker of a join saw. Times are those of now_ns.
struct JoinRecord {
  struct Span {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;

    bool operator==(const Span&) const = default;
  };
  bool newcomer = false;
  Span entry;                    ///< from the start of the worker to the end of its first step
  std::int64_t gap_ns = 0;       ///< the longest between two ends of steps
  std::vector<Span> broadcasts;  ///< of as many bytes as the state has

  bool operator==(const JoinRecord&) const = default;
};

/// Where in the folder of a run this process writes.
std::filesystem::path own_join_file(const std::filesystem::path& folder);

Status write_join(const std::filesystem::path& file, const JoinRecord& record);
/// What all workers of a run have written.
Result<std::vector<JoinRecord>> read_joins(const std::filesystem::path& folder);

/// What one run has shown, in milliseconds.
struct JoinTime {
  double gap_ms = 0;        ///< the longest that a member saw
  double join_ms = 0;       ///< from the newcomer's start to the end of its first step
  double broadcast_ms = 0;  ///< median: from the first worker's call to the last one's return
};

/// kInternal unless there are `workers` records, one of them a newcomer's.
Result<JoinTime> join_time(const std::vector<JoinRecord>& records, int workers);

}  // namespace elastic::bench
