#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/status.hpp"

namespace elastic::bench {

/// One call on a survivor. Times are those of now_ns.
struct CallRecord {
  int call = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t counted = 0;  ///< the contributors, see counted_in

  bool operator==(const CallRecord&) const = default;
};

/// The view change on a survivor: see elastic::ViewChange.
struct ChangeRecord {
  std::uint64_t generation = 0;
  std::int64_t noticed_ns = 0;
  std::int64_t reported_ns = 0;
  std::int64_t decided_ns = 0;
  std::int64_t installed_ns = 0;

  bool operator==(const ChangeRecord&) const = default;
};

/// The file in a run's folder for the calls of the worker that started as `rank`.
std::filesystem::path calls_file(const std::filesystem::path& folder, int rank);
/// The file for the view change of this worker.
std::filesystem::path change_file(const std::filesystem::path& folder, int rank);
/// The file for the time of the fault, which a victim writes: one number.
std::filesystem::path fault_file(const std::filesystem::path& folder);

Status write_calls(const std::filesystem::path& file, const std::vector<CallRecord>& calls);
Result<std::vector<CallRecord>> read_calls(const std::filesystem::path& file);
Status write_change(const std::filesystem::path& file, const ChangeRecord& change);
Result<ChangeRecord> read_change(const std::filesystem::path& file);
Result<std::int64_t> read_fault(const std::filesystem::path& file);

}  // namespace elastic::bench
