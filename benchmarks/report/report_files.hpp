#pragma once

#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "base/status.hpp"
#include "benchmarks/job/rank_options.hpp"
#include "benchmarks/report/network_record.hpp"

namespace elastic::bench {

/// Fails if one of the report files cannot be written, so that a measurement fails before it
/// begins. The error names the option.
Status check_writable(const RankOptions& options);

/// Writes the requested report files. `rows` is an array of objects with the same keys. `draw`
/// makes the SVG document; empty for a report without plot.
Status write_reports(const RankOptions& options, const NetworkRecord& network,
                     const nlohmann::ordered_json& rows,
                     const std::function<std::string()>& draw = {});

/// CSV with one line of keys, then one line for each row.
std::string csv_text(const nlohmann::ordered_json& rows);

}  // namespace elastic::bench
