// A running job as one sees it: over HTTP, in a browser, and with `elasticrun ctl top`.
#include <chrono>
#include <fstream>
#include <optional>
#include <regex>
#include <signal.h>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/http_client.hpp"
#include "integration/trainer_job.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::chrono::milliseconds kLong = std::chrono::milliseconds(30000) * kHangFactor;

class ShownJobTest : public ::testing::Test {
 protected:
  ShownJobTest() {
    const std::regex line("the job is shown at http://(127\\.0\\.0\\.1:[0-9]+)/");
    EXPECT_TRUE(eventually(kLong, [&] {
      const std::string output = job_.output();
      std::smatch found;
      if (!std::regex_search(output, found, line)) return false;
      address_ = found[1];
      return true;
    })) << job_.output();
    EXPECT_TRUE(job_.wait_until_trained(3));
  }

  std::string metrics() const { return body_of(http_get(address_, "/metrics")); }
  bool metrics_come_to_have(const std::string& pattern) const {
    const std::regex expected(pattern);
    return eventually(kLong, [&] { return std::regex_search(metrics(), expected); });
  }
  /// Runs a program of the distribution; its output. Nothing: it is not there.
  std::optional<std::string> run(const std::string& command) const {
    const ScratchFolder scratch;
    Job shell({"/bin/sh", "-c", command}, scratch.path() / "output");
    const auto status = shell.wait(kLong);
    if (status == 127) return std::nullopt;
    EXPECT_EQ(status, 0) << shell.output();
    return shell.output();
  }

  TrainerJob job_{{"-np", "3", "--max-np", "4", "--http", "127.0.0.1:0"}};
  std::string address_;
};

TEST_F(ShownJobTest, MetricsFollowWorkersAndAnswerPromtool) {
  EXPECT_TRUE(metrics_come_to_have("elastic_link_bytes_total\\{rank=\"2\",kind=\"shm\"\\} [1-9]"));
  EXPECT_TRUE(metrics_come_to_have(
      "elastic_worker_step_seconds_total\\{rank=\"0\",phase=\"communication\"\\} [0-9.]*[1-9]"));
  ASSERT_EQ(::kill(job_.pid(1), SIGKILL), 0);
  EXPECT_TRUE(metrics_come_to_have("elastic_views_total\\{cause=\"loss\"\\} 1\n"));
  EXPECT_TRUE(metrics_come_to_have("elastic_views_total\\{cause=\"join\"\\} 1\n"));
  EXPECT_TRUE(metrics_come_to_have("elastic_recovery_seconds_count\\{cause=\"loss\"\\} 1\n"));
  std::ofstream(job_.folder() / "metrics") << metrics();
  const auto said =
      run("promtool check metrics <'" + (job_.folder() / "metrics").string() + "' 2>&1");
  EXPECT_EQ(job_.finish(), 0);
  if (!said) GTEST_SKIP() << "promtool is not installed (Debian: prometheus): not asked";
  EXPECT_EQ(*said, "");
}

TEST_F(ShownJobTest, ThePageShowsRanksInABrowser) {
  const auto page =
      run("chromium --headless --no-sandbox --disable-gpu --user-data-dir='" +
          (job_.folder() / "chromium").string() +
          "' --virtual-time-budget=4000 --dump-dom http://" + address_ + "/ 2>/dev/null");
  EXPECT_EQ(job_.finish(), 0);
  if (!page) GTEST_SKIP() << "chromium is not installed: not asked";
  EXPECT_THAT(*page, HasSubstr("<span id=\"phase\" class=\"badge good\">running</span>"));
  EXPECT_THAT(*page, HasSubstr("slot-2"));
  EXPECT_THAT(*page, ContainsRegex("<td>start</td>"));
  EXPECT_THAT(*page, HasSubstr("<polyline class=\"line\""));
}

TEST_F(ShownJobTest, TopShowsOneFrameOrFollowsTheJobToItsEnd) {
  std::string frame;
  EXPECT_TRUE(metrics_come_to_have(
      "elastic_worker_step_seconds_total\\{rank=\"2\",phase=\"communication\"\\} [0-9.]*[1-9]"));
  ASSERT_TRUE(job_.control({"top", "--once"}, &frame)) << frame;
  EXPECT_THAT(frame, ContainsRegex("job .*: running, step [0-9]+, "));
  EXPECT_THAT(frame, ContainsRegex(" 2  .*slot-2 +synced +[0-9]+ +[0-9.]+ m?s +[0-9]+ % "));
  EXPECT_THAT(frame, HasSubstr("view 1 of 3 workers"));
  EXPECT_THAT(frame, Not(HasSubstr("\x1b")));

  Job top({ELASTICRUN, "ctl", "top"}, job_.folder() / "top",
          {"XDG_RUNTIME_DIR=" + job_.folder().string()});
  EXPECT_TRUE(eventually(kLong, [&] { return !top.output().empty(); }));
  EXPECT_EQ(job_.finish(), 0);
  EXPECT_EQ(top.wait(kLong), 0);
  EXPECT_THAT(top.output(), AnyOf(HasSubstr("the job has ended"), HasSubstr(": done, step ")));
}

}  // namespace
}  // namespace elastic::testing
