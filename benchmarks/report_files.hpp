#pragma once

#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "base/status.hpp"
#include "benchmarks/network_record.hpp"
#include "benchmarks/rank_options.hpp"

namespace elastic::bench {

/// Fails early, before anything is measured, when one of the files could not be written; the error
/// names the option.
Status check_writable(const RankOptions& options);

/// Writes the files that were asked for. `rows` is an array of objects with the same keys; `draw`
/// makes the SVG document of what can be plotted.
Status write_reports(const RankOptions& options, const NetworkRecord& network,
                     const nlohmann::ordered_json& rows,
                     const std::function<std::string()>& draw = {});

/// One line with the keys, then one for each row.
std::string csv_text(const nlohmann::ordered_json& rows);

}  // namespace elastic::bench
