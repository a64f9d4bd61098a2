// Bits that are flipped on the way, where TCP does not notice.
#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/step_checks.hpp"
#include "fault/wire_fixture.hpp"

namespace elastic::testing {
namespace {

class FlippedBit : public WireTest {};

TEST_F(FlippedBit, InAFrameIsDetectedAndTheCallIsTriedAgain) {
  FaultJob& job = make_job({.np = 3});
  splice(1);
  job.start_all({"kind=mixed", "until=" + job.end_file(), "elements=20000"});
  const auto all = job.others({});
  ASSERT_TRUE(FaultJob::await_steps(all, 10)) << job.text();
  EXPECT_FALSE(named({"checksum"}));
  for (int i = 0; i < runs(5); ++i) {
    wire_->flip_in_data();
    ASSERT_TRUE(await(kLong, [&] { return wire_->flipped(); })) << job.text();
    ASSERT_TRUE(FaultJob::await_steps(all, 20)) << job.text();
  }
  EXPECT_TRUE(named({"checksum"})) << job.text();
  EXPECT_EQ(all.front()->log().steps().back().contributors, 3U) << "somebody was given up";
  finish(job, all);
}

/// The view that tells a newcomer whom to link with.
TEST_F(FlippedBit, InAViewIsDetectedAndAskedForAgain) {
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
  EXPECT_TRUE(named({"checksum"})) << job.text();
  // By a checksum, not by links that cannot be made.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3 * kSlowness));
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 10)) << job.text();
  finish(job, job.others({}));
}

}  // namespace
}  // namespace elastic::testing
