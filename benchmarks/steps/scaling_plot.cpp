#include "benchmarks/steps/scaling_plot.hpp"

#include <algorithm>
#include <vector>

#include "benchmarks/report/formatted.hpp"
#include "benchmarks/report/svg_chart.hpp"

namespace elastic::bench {

namespace {

ChartSeries series_of(const nlohmann::ordered_json& rows, const std::string& name,
                      const char* column, double unit) {
  ChartSeries series{.name = name, .points = {}};
  for (const auto& row : rows) {
    series.points.push_back({row.at("ranks").get<double>(), row.at(column).get<double>() / unit});
  }
  return series;
}

Chart speedup_chart(const nlohmann::ordered_json& rows, const std::string& backend) {
  Chart chart{.title = "Speed-up",
              .x_label = "ranks",
              .y_label = "times a lone worker",
              .x_scale = AxisScale::kBinary,
              .y_scale = AxisScale::kBinary,
              .series = {series_of(rows, backend, "speedup", 1)}};
  double most = chart.series.front().points.back().x;
  for (const ScalingReference& reference : kScalingReferences) {
    const double ranks = reference.ranks;
    chart.series.push_back(
        {formatted("%.0f %% at %d GPUs", reference.efficiency * 100, reference.ranks),
         {{1, 1}, {ranks, ranks * reference.efficiency}}});
    most = std::max(most, ranks);
  }
  chart.series.push_back({"ideal", {{1, 1}, {most, most}}});
  return chart;
}

}  // namespace

std::string scaling_plot(const nlohmann::ordered_json& rows) {
  const std::string backend = rows.front().at("backend");
  const std::string heading =
      "elastic scaling, " + rows.front().at("model").get<std::string>() +
      formatted(", %g ms of computing in each step", rows.front().at("compute_ms").get<double>());
  return svg_document(heading, {speedup_chart(rows, backend),
                                {.title = "Time of a step, median",
                                 .x_label = "ranks",
                                 .y_label = "milliseconds",
                                 .x_scale = AxisScale::kBinary,
                                 .series = {series_of(rows, backend, "median_us", 1e3),
                                            series_of(rows, "alone", "alone_us", 1e3)}}});
}

}  // namespace elastic::bench
