#include "benchmarks/collective/collective_plot.hpp"

#include <algorithm>
#include <vector>

#include "benchmarks/report/svg_chart.hpp"

namespace elastic::bench {

namespace {

/// One series for each backend: `column` over size, of the rows with the first row's placement.
std::vector<ChartSeries> series_of(const nlohmann::ordered_json& rows, const char* column) {
  std::vector<ChartSeries> all;
  for (const auto& row : rows) {
    if (row.at("in_place") != rows.front().at("in_place")) continue;
    const std::string name =
        row.at("backend").get<std::string>() + (row.at("encrypt").get<bool>() ? " under TLS" : "");
    auto own = std::find_if(all.begin(), all.end(),
                            [&](const ChartSeries& one) { return one.name == name; });
    if (own == all.end()) own = all.insert(all.end(), {name, {}});
    own->points.push_back({row.at("bytes").get<double>(), row.at(column).get<double>()});
  }
  return all;
}

std::string heading_of(const nlohmann::ordered_json& row) {
  return "elastic " + row.at("operation").get<std::string>() + ", " + row.at("ranks").dump() +
         " ranks, transport " + row.at("transport").get<std::string>() + ", " +
         row.at("dtype").get<std::string>() +
         (row.at("in_place").get<bool>() ? ", in place" : ", out of place");
}

}  // namespace

std::string collective_plot(const nlohmann::ordered_json& rows) {
  if (rows.empty()) return svg_document("nothing was measured", {});
  return svg_document(heading_of(rows.front()), {{.title = "Time of a call, median",
                                                  .x_label = "size (bytes)",
                                                  .y_label = "microseconds",
                                                  .x_scale = AxisScale::kBinary,
                                                  .series = series_of(rows, "median_us")},
                                                 {.title = "Bus bandwidth",
                                                  .x_label = "size (bytes)",
                                                  .y_label = "GB/s",
                                                  .x_scale = AxisScale::kBinary,
                                                  .series = series_of(rows, "busbw_gbs")}});
}

}  // namespace elastic::bench
