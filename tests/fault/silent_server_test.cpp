// The rendezvous server's own link is silent for longer than it bears of anybody.
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/network_fixture.hpp"
#include "fault/step_checks.hpp"

namespace elastic::testing {
namespace {

class SilentServerForLong : public NetworkTest {};

/// It hears nothing of anybody, so the silence is its own.
TEST_F(SilentServerForLong, StallsNobodyAndGivesNobodyUp) {
  FaultJob& job = make_job({.np = 3, .evict_after = kUsualEviction}, 1);
  const std::vector<std::string> arguments{"kind=train", "until=" + job.end_file(),
                                           "pause_us=1000"};
  job.start_all(arguments);
  const auto members = job.others({});
  ASSERT_TRUE(FaultJob::await_steps(members, 20)) << job.text();
  hosts_->silence(kServerHost);
  std::this_thread::sleep_for(3 * kUsualEviction);
  ASSERT_TRUE(FaultJob::await_steps(members, 20)) << job.text();
  hosts_->restore(kServerHost);
  ASSERT_TRUE(FaultJob::await_steps(members, 20)) << job.text();
  ASSERT_TRUE(FaultJob::await_line(job.start(arguments), "entered")) << job.text();
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 20)) << job.text();
  for (FaultWorker* member : members) {
    for (const Step& step : member->log().steps()) {
      EXPECT_GE(step.contributors, 3U) << "somebody was given up";
    }
  }
  finish(job, job.others({}));
}

}  // namespace
}  // namespace elastic::testing
