#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace elastic::bench {

/// An SVG document of latency and bus bandwidth over size, with a line for each backend. `rows`:
/// the rows of a collective's report.
std::string collective_plot(const nlohmann::ordered_json& rows);

}  // namespace elastic::bench
