// A joiner behind a slow line, for which the members would wait, is kept waiting itself.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/network_fixture.hpp"
#include "fault/step_checks.hpp"

namespace elastic::testing {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::steady_clock;

constexpr std::size_t kSlow = 1U << 20;    // bytes per second
constexpr std::size_t kFast = 400U << 20;  // no limit, in effect

class SlowJoiner : public NetworkTest {
 protected:
  static std::vector<std::string> limit(int milliseconds) {
    return {"--max-join-stall-ms", std::to_string(milliseconds)};
  }
  std::vector<std::string> arguments(std::size_t state_bytes) const {
    return {"kind=train", "until=" + job_->end_file(), "pause_us=10000",
            "state_bytes=" + std::to_string(state_bytes)};
  }
  bool said(const std::string& text) { return job_->text().find(text) != std::string::npos; }
  /// Of the steps that the member makes from now on; each is a sleep of 10 ms and an allreduce.
  static microseconds time_of_steps(FaultWorker& member, std::size_t count) {
    const auto begin = steady_clock::now();
    EXPECT_TRUE(FaultJob::await_steps({&member}, count));
    return duration_cast<microseconds>(steady_clock::now() - begin);
  }
};

/// The joiner's probes come every 4 to 6 s, and each round has some in it. The machine has other
/// work at times, so the best rounds are compared: it does not slow down every one.
TEST_F(SlowJoiner, IsKeptWaitingAndCostsTheMembersNothing) {
  constexpr std::size_t kSteps = 100;
  constexpr int kRounds = 5;
  FaultJob& job = make_job({.np = 3, .server_options = limit(2000)}, 1);
  hosts_->limit_download(host_of(3), kSlow);
  job.start_all(arguments(20U << 20));
  const auto members = job.others({});
  ASSERT_TRUE(FaultJob::await_steps(members, 20)) << job.text();
  microseconds alone = microseconds::max();
  for (int i = 0; i < kRounds; ++i) alone = std::min(alone, time_of_steps(*members[0], kSteps));

  FaultWorker& joiner = job.start(arguments(20U << 20));
  ASSERT_TRUE(await(kLong, [&] { return said("waits for a faster line"); })) << job.text();
  EXPECT_TRUE(said("the members wait 2.0 s at most (--max-join-stall-ms)")) << job.text();
  microseconds meanwhile = microseconds::max();
  for (int i = 0; i < kRounds; ++i) {
    meanwhile = std::min(meanwhile, time_of_steps(*members[0], kSteps));
  }
  std::printf("%zu steps take %lld us alone, %lld us while the joiner waits\n", kSteps,
              static_cast<long long>(alone.count()), static_cast<long long>(meanwhile.count()));
  EXPECT_LE(meanwhile, alone * 105 / 100);
  EXPECT_EQ(joiner.log().count("entered"), 0U) << job.text();
  EXPECT_EQ(generation(*members[0]), 1U) << "the members were stopped";

  hosts_->limit_download(host_of(3), kFast);
  ASSERT_TRUE(FaultJob::await_line(joiner, "entered")) << job.text();
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 10)) << job.text();
  EXPECT_EQ(members[0]->log().steps().back().contributors, 4U);
  finish(job, job.others({}));
}

TEST_F(SlowJoiner, IsAdmittedWithAStateThatIsSmallEnough) {
  FaultJob& job = make_job({.np = 3, .server_options = limit(20000)}, 1);
  hosts_->limit_download(host_of(3), kSlow);
  job.start_all(arguments(1U << 20));
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 20)) << job.text();
  ASSERT_TRUE(FaultJob::await_line(job.start(arguments(1U << 20)), "entered")) << job.text();
  EXPECT_FALSE(said("waits for a faster line")) << job.text();
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 10)) << job.text();
  finish(job, job.others({}));
}

/// They wait in any case.
TEST_F(SlowJoiner, IsTakenByMembersThatAreTooFew) {
  FaultJob& job = make_job({.np = 2, .min_np = 2, .server_options = limit(500)}, 1);
  hosts_->limit_download(host_of(2), kSlow);
  job.start_all(arguments(4U << 20));
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 20)) << job.text();
  FaultWorker& joiner = job.start(arguments(4U << 20));
  ASSERT_TRUE(await(kLong, [&] { return said("waits for a faster line"); })) << job.text();
  job.worker(1).kill();
  ASSERT_TRUE(FaultJob::await_line(joiner, "entered")) << job.text();
  ASSERT_TRUE(FaultJob::await_steps(job.others({1}), 10)) << job.text();
  finish(job, job.others({1}));
}

}  // namespace
}  // namespace elastic::testing
