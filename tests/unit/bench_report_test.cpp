#include <filesystem>

#include <gmock/gmock.h>

#include "benchmarks/collective/collective_plot.hpp"
#include "benchmarks/collective/table.hpp"
#include "benchmarks/report/network_record.hpp"
#include "benchmarks/report/report_files.hpp"
#include "benchmarks/report/svg_chart.hpp"
#include "benchmarks/steps/scaling_plot.hpp"

namespace elastic::bench {
namespace {

using nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

int times_in(const std::string& text, const std::string& part) {
  int times = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

TEST(BenchReport, CsvHasALineForEachRow) {
  const ordered_json rows{{{"b", "x,\"y\""}, {"a", 1}, {"none", nullptr}},
                          {{"b", "z"}, {"a", 0.5}, {"none", nullptr}}};
  EXPECT_EQ(csv_text(rows), "b,a,none\n\"x,\"\"y\"\"\",1,\nz,0.5,\n");
  EXPECT_EQ(csv_text(ordered_json::array()), "");
}

ordered_json row(const char* backend, double bytes, double median_us) {
  return {{"operation", "allreduce"}, {"backend", backend}, {"transport", "auto"},
          {"encrypt", false},         {"ranks", 2},         {"bytes", bytes},
          {"dtype", "float"},         {"in_place", false},  {"median_us", median_us},
          {"busbw_gbs", 1.0}};
}

TEST(BenchReport, ThePlotHasALineForEachBackend) {
  const std::string svg = collective_plot(
      ordered_json::array({row("native", 8, 1), row("gloo", 8, 20), row("native", 1024, 10)}));
  EXPECT_THAT(svg, AllOf(HasSubstr(">native</text>"), HasSubstr(">gloo</text>"),
                         HasSubstr("Bus bandwidth"), HasSubstr("elastic allreduce, 2 ranks")));
  EXPECT_EQ(times_in(svg, "<polyline"), 4);  // in two charts
  EXPECT_EQ(times_in(svg, "<circle"), 6);
}

TEST(BenchReport, APlotLeavesOutWhatALogarithmCannotShow) {
  const std::string svg = svg_document("a < b", {{.title = "t",
                                                  .x_label = "x",
                                                  .y_label = "y",
                                                  .series = {{"s", {{1, 0}, {1, 10}, {100, 5}}}}}});
  EXPECT_EQ(times_in(svg, "<circle"), 2);
  EXPECT_THAT(svg, AllOf(HasSubstr("a &lt; b"), Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
}

TEST(BenchTable, SaysWhatAnOperationDoesNotOffer) {
  CollectiveOptions options;
  options.operation = "broadcast";
  Cell cell;
  cell.time_us = {.min = 1, .median = 12.5, .p99 = 2000, .max = 2000};
  cell.wrong = 3;
  cell.ratio = 1.25;
  const std::string line = table_line(4, options, {"gloo", {std::nullopt, cell}});
  EXPECT_THAT(line, AllOf(HasSubstr("N/A"), HasSubstr("12.50"), HasSubstr("2000.0"),
                          HasSubstr("gloo"), HasSubstr("none"), HasSubstr("1.25")));
}

TEST(BenchNetworkRecord, KeepsTheCountersOfAllowances) {
  const Allowances allowances = allowances_of(
      {"rx_bytes", "bw_in_allowance_exceeded", "conntrack_allowance_available"}, {7, 8, 9});
  EXPECT_EQ(allowances, (Allowances{{"bw_in_allowance_exceeded", 8}}));
}

TEST(BenchNetworkRecord, KnowsTheInterfaceOfAnAddress) {
  for (const char* file : {"/sys/class/net/lo/mtu", "/proc/sys/net/ipv4/tcp_congestion_control"}) {
    if (!std::filesystem::exists(file))
      GTEST_SKIP() << "needs " << file << ": mount /proc and /sys";
  }
  EXPECT_EQ(interfaces_of("127.0.0.1"), std::vector<std::string>{"lo"});
  Options options;
  options.tcp_streams = 4;
  const auto record = NetworkRecord(options).to_json();
  EXPECT_EQ(record["flows_per_link"], 4);
  EXPECT_EQ(record["interfaces"][0]["name"], "lo");
  EXPECT_GT(record["interfaces"][0]["mtu"], 0);
  EXPECT_NE(record["congestion_control"], "unknown");
}

TEST(BenchNetworkRecord, SaysHowManyFlowsWereUsed) {
  NetworkRecord measured((Options()));
  EXPECT_TRUE(measured.to_json()["flows_per_link"].is_null());
  measured.add({});  // on one host
  EXPECT_EQ(measured.to_json()["flows_per_link"], 1);
  Tuning tuning;
  tuning.flows_opened = 8;
  tuning.flows_used = 2;
  measured.add(tuning);
  EXPECT_EQ(measured.to_json()["flows_per_link"], 2);
}

TEST(BenchScalingPlot, ShowsTheReferencesBesideTheMeasured) {
  const ordered_json rows = ordered_json::array({{{"model", "resnet50"},
                                                  {"backend", "native"},
                                                  {"compute_ms", 170},
                                                  {"ranks", 2},
                                                  {"speedup", 1.9},
                                                  {"median_us", 180e3},
                                                  {"alone_us", 171e3}}});
  const std::string svg = scaling_plot(rows);
  EXPECT_THAT(svg, AllOf(HasSubstr(">native</text>"), HasSubstr("96 % at 8 GPUs"),
                         HasSubstr("94 % at 8 GPUs"), HasSubstr(">ideal</text>")));
}

}  // namespace
}  // namespace elastic::bench
