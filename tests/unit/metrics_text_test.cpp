#include "rendezvous/monitoring/metrics_text.hpp"

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/monitoring/status_page.hpp"
#include "unit/watched_job.hpp"

namespace elastic::monitoring {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSubsetOf;
using ::testing::Not;
using ::testing::SizeIs;

std::set<std::string> names_in(const std::string& text) {
  static const std::regex kName("elastic_[a-z_]+");
  return {std::sregex_token_iterator(text.begin(), text.end(), kName),
          std::sregex_token_iterator()};
}

std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(MetricsText, HasWhatTheStatusTells) {
  const std::string text = metrics_text(testing::watched_job());
  for (const char* line : {
           "elastic_job_info{job=\"digits\"} 1\n",
           "elastic_job_phase{phase=\"running\"} 1\n",
           "elastic_job_phase{phase=\"failed\"} 0\n",
           "# TYPE elastic_steps_total counter\nelastic_steps_total 1000\n",
           "elastic_workers{state=\"synced\"} 1\n",
           "elastic_workers{state=\"disconnected\"} 1\n",
           "elastic_workers{state=\"waiting\"} 1\n",
           "elastic_host_connected{host=\"right\",number=\"1\"} 0\n",
           "elastic_views_total{cause=\"loss\"} 2\n",
           "elastic_worker_info{rank=\"0\",host=\"left\",slot=\"slot-0\",pid=\"90\"} 1\n",
           "elastic_worker_step_seconds_total{rank=\"0\",phase=\"compute\"} 35\n",
           "elastic_link_bytes_total{rank=\"1\",kind=\"tcp\"} 1000000\n",
           "elastic_compression_bytes_total{rank=\"0\",form=\"encoded\"} 200\n",
           "elastic_ramp_gamma{rank=\"0\",point=\"now\"} 1.5\n",
           "elastic_worker_heartbeat_age_seconds{rank=\"0\"} 0.012\n",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(MetricsText, TellsForHowLongAHostIsInQuarantine) {
  auto job = testing::watched_job();
  EXPECT_THAT(metrics_text(job),
              HasSubstr("elastic_host_quarantine_seconds{host=\"right\",number=\"1\"} 0\n"));
  job.launchers->at(1).quarantine = {"it is broken", 1500};
  EXPECT_THAT(metrics_text(job),
              HasSubstr("elastic_host_quarantine_seconds{host=\"right\",number=\"1\"} 1.5\n"));
}

TEST(MetricsText, BucketsOfTheRecoveryTimesAreCumulative) {
  const std::string text = metrics_text(testing::watched_job());
  const std::string name = "elastic_recovery_seconds";
  EXPECT_THAT(text, HasSubstr(name + "_bucket{cause=\"loss\",le=\"0.05\"} 0\n"));
  EXPECT_THAT(text, HasSubstr(name + "_bucket{cause=\"loss\",le=\"0.1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr(name + "_bucket{cause=\"loss\",le=\"0.5\"} 2\n"));
  EXPECT_THAT(text, HasSubstr(name + "_bucket{cause=\"loss\",le=\"+Inf\"} 2\n"));
  EXPECT_THAT(text, HasSubstr(name + "_sum{cause=\"loss\"} 0.5\n"));
  EXPECT_THAT(text, HasSubstr(name + "_count{cause=\"loss\"} 2\n"));
}

TEST(MetricsText, NamesCannotEndALabel) {
  auto status = testing::watched_job();
  status.job = "a\"} 1\nb\\";
  EXPECT_THAT(metrics_text(status), HasSubstr("{job=\"a\\\"} 1\\nb\\\\\"} 1\n"));
}

TEST(MetricsText, AWorkerOfAnEarlierReleaseHasNoFigures) {
  auto status = testing::watched_job();
  status.progress[1].figures.reset();
  status.history.reset();
  const std::string text = metrics_text(status);
  EXPECT_THAT(text, HasSubstr("elastic_link_bytes_total{rank=\"0\",kind=\"shm\"} 4000000\n"));
  EXPECT_THAT(text, Not(HasSubstr("elastic_link_bytes_total{rank=\"1\"")));
}

TEST(Dashboard, AsksForMetricsThatThereAre) {
  const std::string dashboard = read(ELASTIC_SOURCE_DIR "/docs/monitoring/grafana.json");
  const std::set<std::string> asked = names_in(dashboard);
  EXPECT_THAT(asked, Not(SizeIs(0)));
  EXPECT_THAT(asked, IsSubsetOf(names_in(metrics_text(testing::watched_job()))));
}

TEST(Document, ListsAllMetrics) {
  const std::set<std::string> listed = names_in(read(ELASTIC_SOURCE_DIR "/docs/monitoring.md"));
  std::set<std::string> there = names_in(metrics_text(testing::watched_job()));
  for (const char* suffix : {"_bucket", "_sum", "_count"}) {
    there.erase(std::string("elastic_recovery_seconds") + suffix);
  }
  EXPECT_THAT(there, IsSubsetOf(listed));
}

TEST(StatusPage, NeedsNothingFromElsewhereAndMakesNoMarkupOfNames) {
  const std::string page(kStatusPage);
  EXPECT_EQ(page, read(ELASTIC_SOURCE_DIR "/rendezvous/monitoring/status_page.html"));
  // The one address is the name of SVG's namespace.
  const std::regex elsewhere("https?://(?!www\\.w3\\.org/2000/svg\")|\\bsrc=|@import|url\\(");
  EXPECT_FALSE(std::regex_search(page, elsewhere));
  const std::regex markup("innerHTML|outerHTML|insertAdjacentHTML|document\\.write|eval\\(");
  EXPECT_FALSE(std::regex_search(page, markup));
}

}  // namespace
}  // namespace elastic::monitoring
