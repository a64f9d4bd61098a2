#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/status.hpp"

namespace elastic::bench {

/// One call as a survivor saw it. Times are those of now_ns.
struct CallRecord {
  int call = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t counted = 0;  ///< see counted_in

  bool operator==(const CallRecord&) const = default;
};

/// Where in the folder of a run the worker that started as `rank` writes its calls.
std::filesystem::path calls_file(const std::filesystem::path& folder, int rank);
/// Where the victim writes when it dies: one number.
std::filesystem::path fault_file(const std::filesystem::path& folder);

Status write_calls(const std::filesystem::path& file, const std::vector<CallRecord>& calls);
Result<std::vector<CallRecord>> read_calls(const std::filesystem::path& file);
Result<std::int64_t> read_fault(const std::filesystem::path& file);

}  // namespace elastic::bench
