// Bits that are flipped on the way, where TCP does not notice.
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/network_fixture.hpp"
#include "fault/step_checks.hpp"
#include "fault/wire.hpp"

namespace elastic::testing {
namespace {

using ::testing::HasSubstr;

class FlippedBit : public NetworkTest {
 protected:
  bool named_by_somebody() {
    bool named = false;
    for (FaultWorker* worker : job_->others({})) {
      for (const std::string& line : worker->log().lines()) {
        named = named || line.find("checksum") != std::string::npos;
      }
    }
    return named;
  }

  std::unique_ptr<Wire> wire_;
};

TEST_F(FlippedBit, InAFrameIsDetectedAndTheCallIsTriedAgain) {
  FaultJob& job = make_job({.np = 3});
  wire_ = std::make_unique<Wire>(*hosts_, host_of(1));
  job.start_all({"kind=mixed", "until=" + job.end_file(), "elements=20000"});
  const auto all = job.others({});
  ASSERT_TRUE(FaultJob::await_steps(all, 10)) << job.text();
  EXPECT_FALSE(named_by_somebody());
  for (int i = 0; i < runs(5); ++i) {
    wire_->flip_in_next(1);
    ASSERT_TRUE(await(kLong, [&] { return wire_->still_to_flip() == 0; })) << job.text();
    ASSERT_TRUE(FaultJob::await_steps(all, 20)) << job.text();
  }
  EXPECT_TRUE(named_by_somebody()) << job.text();
  EXPECT_EQ(all.front()->log().steps().back().contributors, 3U) << "somebody was given up";
  finish(job, all);
}

TEST_F(FlippedBit, InTheStateIsDetectedAndSentAgain) {
  FaultJob& job = make_job({.np = 2}, 1);
  wire_ = std::make_unique<Wire>(*hosts_, host_of(2));
  const std::vector<std::string> arguments{"kind=train", "until=" + job.end_file(), "pause_us=1000",
                                           "state_bytes=4000000"};
  job.start_all(arguments);
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 10)) << job.text();
  wire_->flip_in_next(1);
  FaultWorker& joiner = job.start(arguments);
  // It checks every byte itself.
  ASSERT_TRUE(FaultJob::await_line(joiner, "entered")) << job.text();
  EXPECT_EQ(wire_->still_to_flip(), 0);
  EXPECT_TRUE(named_by_somebody()) << job.text();
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 10)) << job.text();
  EXPECT_EQ(joiner.log().steps().back().contributors, 3U);
  finish(job, job.others({}));
}

}  // namespace
}  // namespace elastic::testing
