#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "benchmarks/collective/collective_options.hpp"
#include "benchmarks/collective/collective_result.hpp"
#include "benchmarks/job/library_settings.hpp"

namespace elastic::bench {

/// The lines of a table in the format of nccl-tests, without a final line end.
std::string table_header(const CollectiveOptions& options, const LibrarySettings& settings,
                         int ranks);
std::string table_line(std::size_t count, const CollectiveOptions& options,
                       const BackendResult& result);
std::string table_footer(std::int64_t wrong, bool checked, double mean_busbw);

}  // namespace elastic::bench
