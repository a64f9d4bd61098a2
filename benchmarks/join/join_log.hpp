#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/status.hpp"

namespace elastic::bench {

/// The measurements of one worker in a join. Times are those of now_ns.
struct JoinRecord {
  struct Span {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;

    bool operator==(const Span&) const = default;
  };
  bool joiner = false;           ///< whether it is the joiner
  Span entry;                    ///< from the start of the worker to the end of its first step
  std::int64_t gap_ns = 0;       ///< the longest time between the ends of two steps
  std::vector<Span> broadcasts;  ///< calls, each of as many bytes as the state has

  bool operator==(const JoinRecord&) const = default;
};

/// This process's file in the folder of a run.
std::filesystem::path own_join_file(const std::filesystem::path& folder);

Status write_join(const std::filesystem::path& file, const JoinRecord& record);
/// Reads the records of all workers of a run.
Result<std::vector<JoinRecord>> read_joins(const std::filesystem::path& folder);

/// The result of one run, in milliseconds.
struct JoinTime {
  double gap_ms = 0;        ///< the longest gap of a member
  double join_ms = 0;       ///< from the joiner's start to the end of its first step
  double broadcast_ms = 0;  ///< median: from the first worker's call to the last one's return
};

/// kInternal unless there are `workers` records, one of them of a joiner.
Result<JoinTime> join_time(const std::vector<JoinRecord>& records, int workers);

}  // namespace elastic::bench
