// The server has no descriptors left: it refuses joiners, and the job goes on.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fault/descriptor_limit.hpp"
#include "fault/effort.hpp"
#include "fault/fault_job.hpp"
#include "fault/step_checks.hpp"

namespace elastic::testing {
namespace {

using ::testing::HasSubstr;

class OutOfDescriptors : public ::testing::Test {
 protected:
  OutOfDescriptors() : job_({.np = 3}) {
    job_.start_all(arguments());
    EXPECT_TRUE(FaultJob::await_steps(job_.others({}), 10)) << job_.text();
  }
  std::vector<std::string> arguments() const {
    return {"kind=train", "until=" + job_.end_file(), "pause_us=1000"};
  }
  /// Once there are descriptors again, a joiner is admitted.
  void expect_recovery(const std::vector<std::size_t>& gone) {
    EXPECT_TRUE(FaultJob::await_line(job_.start(arguments()), "entered")) << job_.text();
    EXPECT_TRUE(FaultJob::await_steps(job_.others(gone), 10)) << job_.text();
    finish(job_, job_.others(gone));
  }

  FaultJob job_;
};

TEST_F(OutOfDescriptors, TheServerTurnsNewcomersAway) {
  const auto members = job_.others({});
  {
    const NoMoreDescriptors none(job_.server_pid());
    FaultWorker& newcomer = job_.start(arguments(), {"ELASTIC_INIT_TIMEOUT_MS=1500"});
    EXPECT_EQ(newcomer.wait(kLong), 3) << job_.text();
    EXPECT_THAT(newcomer.log().told("failed "), HasSubstr("unavailable"));
    EXPECT_THAT(newcomer.log().told("failed "), HasSubstr(job_.address()));
    EXPECT_TRUE(FaultJob::await_steps(members, 20)) << job_.text();
    EXPECT_EQ(generation(*members.front()), 1U);
  }
  expect_recovery({3});
}

}  // namespace
}  // namespace elastic::testing
