// A bit of the state that is sent to a joiner is flipped on the way, where TCP does not notice.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/step_checks.hpp"
#include "fault/wire_fixture.hpp"

namespace elastic::testing {
namespace {

class FlippedState : public WireTest {};

TEST_F(FlippedState, IsDetectedAndSentAgain) {
  if (encrypted()) {
    GTEST_SKIP() << "under TLS the state cannot be told from what a joiner measures its line with";
  }
  FaultJob& job = make_job({.np = 2}, 1);
  splice(2);
  const std::vector<std::string> arguments{"kind=train", "until=" + job.end_file(), "pause_us=1000",
                                           "state_bytes=4000000"};
  job.start_all(arguments);
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 10)) << job.text();
  wire_->flip_in_data();
  FaultWorker& joiner = job.start(arguments);
  // The joiner checks every byte of the state itself.
  ASSERT_TRUE(FaultJob::await_line(joiner, "entered")) << job.text();
  EXPECT_TRUE(wire_->flipped());
  EXPECT_TRUE(damage_is_named()) << job.text();
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 10)) << job.text();
  EXPECT_EQ(joiner.log().steps().back().contributors, 3U);
  finish(job, job.others({}));
}

}  // namespace
}  // namespace elastic::testing
