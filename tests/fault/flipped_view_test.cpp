// A bit of what the rendezvous server says is flipped on the way, where TCP does not notice.
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/step_checks.hpp"
#include "fault/wire_fixture.hpp"

namespace elastic::testing {
namespace {

class FlippedView : public WireTest {};

/// Flips a bit in the view that tells a joiner its peers.
TEST_F(FlippedView, IsDetectedAndAskedForAgain) {
  FaultJob& job = make_job({.np = 2}, 1);
  splice(2);
  const std::vector<std::string> arguments{"kind=train", "until=" + job.end_file(),
                                           "pause_us=1000"};
  job.start_all(arguments);
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 10)) << job.text();
  wire_->flip_in_control();
  const auto begin = std::chrono::steady_clock::now();
  FaultWorker& joiner = job.start(arguments);
  ASSERT_TRUE(FaultJob::await_line(joiner, "entered")) << job.text();
  EXPECT_TRUE(wire_->flipped());
  EXPECT_TRUE(damage_is_named()) << job.text();
  // The checksum finds it, long before links that cannot be made would.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3 * kSlowness));
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 10)) << job.text();
  EXPECT_EQ(joiner.log().steps().back().contributors, 3U);
  EXPECT_EQ(generation(joiner), 2U) << "a worker was given up\n" << job.text();
  finish(job, job.others({}));
}

}  // namespace
}  // namespace elastic::testing
