#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace elastic::bench {

/// An SVG document: latency and bus bandwidth over size, a line for each backend. `rows` are those
/// of a collective's report.
std::string collective_plot(const nlohmann::ordered_json& rows);

}  // namespace elastic::bench
