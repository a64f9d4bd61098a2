// The server or a member has no descriptors left: a joiner is refused, and the job goes on.
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

/// A job of three, of which the server or a member runs out of descriptors.
class DescriptorsTest : public ::testing::Test {
 protected:
  explicit DescriptorsTest(const std::string& transport = "auto")
      : job_({.np = 3, .transport = transport}) {
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

using OutOfDescriptors = DescriptorsTest;

TEST_F(OutOfDescriptors, TheServerRefusesJoiners) {
  const auto members = job_.others({});
  {
    const NoMoreDescriptors none(job_.server_pid());
    FaultWorker& joiner = job_.start(arguments(), {"ELASTIC_INIT_TIMEOUT_MS=1500"});
    EXPECT_EQ(joiner.wait(kLong), 3) << job_.text();
    EXPECT_THAT(joiner.log().told("failed "), HasSubstr("unavailable"));
    EXPECT_THAT(joiner.log().told("failed "), HasSubstr(job_.address()));
    EXPECT_TRUE(FaultJob::await_steps(members, 20)) << job_.text();
    EXPECT_EQ(generation(*members.front()), 1U);
  }
  expect_recovery({3});
}

class MemberOutOfDescriptors : public DescriptorsTest,
                               public ::testing::WithParamInterface<std::string> {
 protected:
  MemberOutOfDescriptors() : DescriptorsTest(GetParam()) {}
};

TEST_P(MemberOutOfDescriptors, CostsOnlyTheJoinerItsPlace) {
  const auto members = job_.others({});
  {
    const NoMoreDescriptors none(job_.worker(1).pid());
    FaultWorker& joiner = job_.start(arguments());
    EXPECT_EQ(joiner.wait(kLong), 3) << job_.text();
    EXPECT_TRUE(FaultJob::await_steps(members, 20)) << job_.text();
    EXPECT_EQ(members.front()->log().steps().back().contributors, 3U);
  }
  expect_recovery({3});
}

/// A change of the view in which no links are made takes no descriptor.
TEST_P(MemberOutOfDescriptors, CostsNoMemberItsPlaceWhenAnotherDies) {
  const auto left = job_.others({2});
  {
    const NoMoreDescriptors none(job_.worker(1).pid());
    job_.worker(2).kill();
    EXPECT_TRUE(FaultJob::await_steps(left, 20)) << job_.text();
    EXPECT_EQ(left.front()->log().steps().back().contributors, 2U);
    EXPECT_EQ(generation(*left.front()), 2U) << job_.text();
  }
  expect_recovery({2});
}

INSTANTIATE_TEST_SUITE_P(Over, MemberOutOfDescriptors, ::testing::Values("shm", "tcp"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace elastic::testing
