// Bits that are flipped on the way, where TCP does not notice.
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
  EXPECT_FALSE(damage_is_named());
  for (int i = 0; i < runs(5); ++i) {
    wire_->flip_in_data();
    ASSERT_TRUE(eventually(kLong, [&] { return wire_->flipped(); })) << job.text();
    ASSERT_TRUE(FaultJob::await_steps(all, 20)) << job.text();
  }
  EXPECT_TRUE(damage_is_named()) << job.text();
  EXPECT_EQ(all.front()->log().steps().back().contributors, 3U) << "a worker was given up";
  finish(job, all);
}

}  // namespace
}  // namespace elastic::testing
