#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace elastic::bench {

/// One line of a chart. The axes are logarithmic, so only points with both coordinates above 0 are
/// drawn.
struct ChartSeries {
  struct Point {
    double x = 0;
    double y = 0;
  };
  std::string name;
  std::vector<Point> points;
};

/// The numbers along an axis and their notation.
enum class AxisScale : std::uint8_t {
  kDecimal,  ///< powers of ten
  kBinary,   ///< powers of two, with K, M and G
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  AxisScale x_scale = AxisScale::kDecimal;
  AxisScale y_scale = AxisScale::kDecimal;
  std::vector<ChartSeries> series;
};

/// An SVG document with the charts side by side, under a heading and a common legend. Series with
/// the same name look the same in all charts.
std::string svg_document(const std::string& heading, const std::vector<Chart>& charts);

}  // namespace elastic::bench
