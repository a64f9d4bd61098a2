#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "base/status.hpp"
#include "benchmarks/collective/collective_options.hpp"
#include "benchmarks/collective/collective_result.hpp"
#include "benchmarks/job/library_settings.hpp"
#include "benchmarks/report/network_record.hpp"

namespace elastic::bench {

/// The table and the report files of one measurement. Only the rank with `shows` prints and writes.
/// Owned by the main thread.
class CollectiveReport {
 public:
  CollectiveReport(const CollectiveOptions& options, const LibrarySettings& settings, int ranks,
                   bool shows)
      : options_(options), settings_(settings), ranks_(ranks), shows_(shows) {}

  /// Prints the header. `peers`: lines about the measured peers.
  void begin(const std::string& peers) const;
  void add(const SizeResult& result);
  /// Writes the files. kInternal if an element was wrong. `tuning`: that of the measured job.
  Status end(const Tuning& tuning);

 private:
  void add_row(std::size_t count, const std::string& backend, Placement placement,
               const Cell& cell);

  const CollectiveOptions& options_;
  const LibrarySettings& settings_;
  const int ranks_;
  const bool shows_;
  NetworkRecord network_;
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
  std::int64_t wrong_ = 0;
  double busbw_sum_ = 0;
};

}  // namespace elastic::bench
