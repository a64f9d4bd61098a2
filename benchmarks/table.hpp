#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "benchmarks/command_line.hpp"
#include "benchmarks/library_settings.hpp"
#include "benchmarks/statistics.hpp"

namespace elastic::bench {

/// One half of a line: out of place or in place.
struct Cell {
  Summary time_us;
  double algbw = 0;                   ///< GB/s
  double busbw = 0;                   ///< GB/s
  std::optional<std::int64_t> wrong;  ///< elements; nothing where it was not checked
};

/// The lines of nccl-tests' table, without line ends but within.
std::string table_header(const AllreduceOptions& options, const LibrarySettings& settings,
                         int ranks);
std::string table_line(std::size_t count, DType dtype, ReduceOp op, const Cell& out_of_place,
                       const Cell& in_place);
std::string table_footer(std::int64_t wrong, bool checked, double mean_busbw);

}  // namespace elastic::bench
