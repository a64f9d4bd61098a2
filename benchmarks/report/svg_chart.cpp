#include "benchmarks/report/svg_chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "benchmarks/report/formatted.hpp"

namespace elastic::bench {

namespace {

// Sizes in pixels.
constexpr double kChartWidth = 560;
constexpr double kChartHeight = 420;
constexpr double kHeader = 70;  // heading and legend
constexpr double kLeft = 75, kRight = 20, kTop = 35, kBottom = 55;
constexpr std::size_t kMostTicks = 9;

struct Style {
  const char* colour;
  const char* dashes;
};
// Okabe and Ito's colours, which colour-blind readers can distinguish; dashes for print.
constexpr std::array<Style, 6> kStyles{{{"#0072b2", "none"},
                                        {"#d55e00", "7 3"},
                                        {"#009e73", "2 3"},
                                        {"#cc79a7", "9 3 2 3"},
                                        {"#e69f00", "4 4"},
                                        {"#333333", "12 4"}}};

std::string escaped(const std::string& text) {
  std::string result;
  for (const char character : text) {
    switch (character) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      default:
        result += character;
    }
  }
  return result;
}

std::string text_at(double x, double y, const char* anchor, const std::string& text,
                    const std::string& more = "") {
  return formatted("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>", x, y, anchor,
                   more.c_str()) +
         escaped(text) + "</text>\n";
}

std::string line_between(double x1, double y1, double x2, double y2, const char* colour) {
  return formatted("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1,
                   y1, x2, y2, colour);
}

/// A logarithmic axis between whole powers of its base; maps a value to a place in pixels.
class Axis {
 public:
  Axis(AxisScale scale, double least, double most, double begin, double end)
      : scale_(scale),
        first_(std::floor(exponent(least) + kSlack)),
        last_(std::max(std::ceil(exponent(most) - kSlack), first_ + 1)),
        begin_(begin),
        end_(end) {}

  double place(double value) const {
    return begin_ + (exponent(value) - first_) / (last_ - first_) * (end_ - begin_);
  }
  std::vector<double> ticks() const {
    const double step = std::ceil((last_ - first_ + 1) / static_cast<double>(kMostTicks));
    std::vector<double> values;
    for (double at = first_; at <= last_; at += step) values.push_back(std::pow(base(), at));
    return values;
  }
  std::string label(double value) const {
    if (scale_ == AxisScale::kDecimal) return formatted("%g", value);
    for (const auto& [unit, name] : {std::pair{30, "G"}, {20, "M"}, {10, "K"}}) {
      const double bytes = std::ldexp(1.0, unit);
      if (value >= bytes) return formatted("%g%s", value / bytes, name);
    }
    return formatted("%g", value);
  }

 private:
  static constexpr double kSlack = 0.02;  // values this close, in exponents, are at the edge
  double base() const { return scale_ == AxisScale::kBinary ? 2 : 10; }
  double exponent(double value) const { return std::log(value) / std::log(base()); }

  AxisScale scale_;
  double first_;  // exponents
  double last_;
  double begin_;  // pixels
  double end_;
};

struct Extent {
  double least = std::numeric_limits<double>::max();
  double most = 0;

  void include(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

bool drawn(const ChartSeries::Point& point) {
  return point.x > 0 && point.y > 0;
}

std::string frame_of(const Chart& chart, const Axis& x, const Axis& y, double left) {
  const double right = left + kChartWidth - kLeft - kRight;
  const double top = kHeader + kTop;
  const double bottom = kHeader + kChartHeight - kBottom;
  std::string svg =
      text_at((left + right) / 2, top - 12, "middle", chart.title, " font-weight=\"bold\"");
  for (const double tick : x.ticks()) {
    svg += line_between(x.place(tick), top, x.place(tick), bottom, "#dddddd");
    svg += text_at(x.place(tick), bottom + 18, "middle", x.label(tick));
  }
  for (const double tick : y.ticks()) {
    svg += line_between(left, y.place(tick), right, y.place(tick), "#dddddd");
    svg += text_at(left - 8, y.place(tick) + 4, "end", y.label(tick));
  }
  svg += formatted(
      "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" "
      "stroke=\"#333333\"/>\n",
      left, top, right - left, bottom - top);
  svg += text_at((left + right) / 2, bottom + 42, "middle", chart.x_label);
  const double middle = (top + bottom) / 2;
  svg += text_at(left - 55, middle, "middle", chart.y_label,
                 formatted(" transform=\"rotate(-90 %.1f %.1f)\"", left - 55, middle));
  return svg;
}

std::string curve_of(const ChartSeries& series, const Style& style, const Axis& x, const Axis& y) {
  std::string places;
  std::string marks;
  for (const auto& point : series.points) {
    if (!drawn(point)) continue;
    places += formatted("%.1f,%.1f ", x.place(point.x), y.place(point.y));
    marks += formatted("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"%s\"/>\n",
                       x.place(point.x), y.place(point.y), style.colour);
  }
  return formatted(
             "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\" "
             "stroke-dasharray=\"%s\"/>\n",
             places.c_str(), style.colour, style.dashes) +
         marks;
}

std::string chart_at(const Chart& chart, double offset, const std::vector<std::string>& names) {
  Extent across;
  Extent up;
  for (const ChartSeries& series : chart.series) {
    for (const auto& point : series.points) {
      if (!drawn(point)) continue;
      across.include(point.x);
      up.include(point.y);
    }
  }
  if (across.most == 0) {
    return text_at(offset + kChartWidth / 2, kHeader + kChartHeight / 2, "middle",
                   chart.title + ": nothing to draw");
  }
  const double left = offset + kLeft;
  const Axis x(chart.x_scale, across.least, across.most, left, offset + kChartWidth - kRight);
  const Axis y(chart.y_scale, up.least, up.most, kHeader + kChartHeight - kBottom, kHeader + kTop);
  std::string svg = frame_of(chart, x, y, left);
  for (const ChartSeries& series : chart.series) {
    const auto name = std::find(names.begin(), names.end(), series.name) - names.begin();
    svg += curve_of(series, kStyles[static_cast<std::size_t>(name) % kStyles.size()], x, y);
  }
  return svg;
}

// All names, in the order in which they first appear.
std::vector<std::string> names_of(const std::vector<Chart>& charts) {
  std::vector<std::string> names;
  for (const Chart& chart : charts) {
    for (const ChartSeries& series : chart.series) {
      if (std::find(names.begin(), names.end(), series.name) == names.end()) {
        names.push_back(series.name);
      }
    }
  }
  return names;
}

std::string legend_of(const std::vector<std::string>& names) {
  constexpr double kSample = 36;
  constexpr double kCharacter = 8;
  std::string svg;
  double x = kLeft;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Style& style = kStyles[i % kStyles.size()];
    svg += formatted(
        "<line x1=\"%.1f\" y1=\"52\" x2=\"%.1f\" y2=\"52\" stroke=\"%s\" stroke-width=\"2\" "
        "stroke-dasharray=\"%s\"/>\n",
        x, x + kSample, style.colour, style.dashes);
    svg += text_at(x + kSample + 6, 56, "start", names[i]);
    x += kSample + 30 + kCharacter * static_cast<double>(names[i].size());
  }
  return svg;
}

}  // namespace

std::string svg_document(const std::string& heading, const std::vector<Chart>& charts) {
  const double width = kChartWidth * static_cast<double>(charts.size());
  std::string svg = formatted(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      width, kHeader + kChartHeight);
  svg += text_at(kLeft, 28, "start", heading, " font-size=\"16\"");
  const auto names = names_of(charts);
  svg += legend_of(names);
  for (std::size_t i = 0; i < charts.size(); ++i) {
    svg += chart_at(charts[i], kChartWidth * static_cast<double>(i), names);
  }
  return svg + "</svg>\n";
}

}  // namespace elastic::bench
