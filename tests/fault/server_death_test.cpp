// The rendezvous server dies: collectives do not need it.
#include <algorithm>
#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/fault_job.hpp"
#include "fault/punctuality.hpp"
#include "fault/step_checks.hpp"

namespace elastic::testing {
namespace {

using std::chrono::microseconds;

class ServerDeath : public ::testing::TestWithParam<std::string> {};

TEST_P(ServerDeath, StallsNotOneStep) {
  const Punctuality punctuality;
  FaultJob job({.np = 3});
  job.start_all({"kind=" + GetParam(), "until=" + job.end_file(), "pause_us=500"});
  const auto all = job.others({});
  ASSERT_TRUE(FaultJob::await_steps(all, 30)) << job.text();
  const std::uint64_t before = all.front()->log().steps().back().index;
  job.kill_server();
  ASSERT_TRUE(FaultJob::await_steps(all, 300)) << job.text();
  // A step that waits for something waits for the server, and would do so for ever.
  const microseconds bound = std::chrono::milliseconds(200 * kSlowness) +
                             std::chrono::duration_cast<microseconds>(3 * punctuality.worst());
  for (FaultWorker* worker : all) {
    for (const Step& step : worker->log().steps()) {
      if (step.index < before) continue;
      EXPECT_EQ(step.generation, 1U);
      EXPECT_LT(step.microseconds, bound.count()) << "step " << step.index << " stalled";
    }
  }
  finish(job, all);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ServerDeath, ::testing::Values("mixed", "train"));

}  // namespace
}  // namespace elastic::testing
