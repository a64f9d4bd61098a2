#include "benchmarks/scaling_plot.hpp"

#include <algorithm>
#include <vector>

#include "benchmarks/formatted.hpp"
#include "benchmarks/svg_chart.hpp"

namespace elastic::bench {

std::string scaling_plot(const nlohmann::ordered_json& rows) {
  ChartSeries measured{.name = rows.front().at("backend").get<std::string>(), .points = {}};
  double most = 0;
  for (const auto& row : rows) {
    measured.points.push_back({row.at("ranks").get<double>(), row.at("speedup").get<double>()});
    most = std::max(most, measured.points.back().x);
  }
  std::vector<ChartSeries> all{measured};
  for (const ScalingReference& reference : kScalingReferences) {
    const double ranks = reference.ranks;
    all.push_back({formatted("%.0f %% at %d GPUs", reference.efficiency * 100, reference.ranks),
                   {{1, 1}, {ranks, ranks * reference.efficiency}}});
    most = std::max(most, ranks);
  }
  all.push_back({"ideal", {{1, 1}, {most, most}}});
  const std::string heading =
      "elastic scaling, " + rows.front().at("model").get<std::string>() +
      formatted(", %g ms of computing in each step", rows.front().at("compute_ms").get<double>());
  return svg_document(heading, {{.title = "Speed-up",
                                 .x_label = "ranks",
                                 .y_label = "times a lone worker",
                                 .x_scale = AxisScale::kBinary,
                                 .y_scale = AxisScale::kBinary,
                                 .series = all}});
}

}  // namespace elastic::bench
