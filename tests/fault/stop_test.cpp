// Workers that are frozen for a while with SIGSTOP: shorter and longer than the server bears.
#include <chrono>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/fault_job.hpp"
#include "fault/punctuality.hpp"
#include "fault/step_checks.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;

struct Frozen {
  std::size_t slot;
  std::string kind;
  std::size_t elements;
};

class Stop : public ::testing::TestWithParam<Frozen> {
 protected:
  Stop() : job_({.np = 3, .evict_after = kUsualEviction}) {
    job_.start_all({"until=" + job_.end_file(), "pause_us=1000", "kind=" + GetParam().kind,
                    "elements=" + std::to_string(GetParam().elements / kSlowness)});
    EXPECT_TRUE(FaultJob::await_steps(job_.others({}), 20)) << job_.text();
  }
  FaultWorker& frozen() { return job_.worker(GetParam().slot); }

  const Punctuality punctuality_;
  FaultJob job_;
};

TEST_P(Stop, For200MillisecondsEvictsNoMember) {
  constexpr milliseconds kStop(200);
  constexpr milliseconds kTooLong(300);
  // If the machine is too slow to wake this test in time, the pause was longer than intended.
  milliseconds stopped = kTooLong;
  for (int attempt = 0; attempt < 10 && stopped >= kTooLong; ++attempt) {
    ASSERT_TRUE(FaultJob::await_steps(job_.others({}), 20)) << job_.text();
    const auto begin = steady_clock::now();
    frozen().signal(SIGSTOP);
    std::this_thread::sleep_for(kStop);  // the length of the pause is what is tested
    frozen().signal(SIGCONT);
    stopped = std::chrono::duration_cast<milliseconds>(steady_clock::now() - begin);
    ASSERT_TRUE(FaultJob::await_steps(job_.others({}), 50)) << job_.text();
    if (stopped < kTooLong) {
      EXPECT_EQ(generation(frozen()), 1U);
    } else if (generation(job_.worker(0)) > 1) {
      GTEST_SKIP() << "the machine is too loaded to stop a process for 200 ms";
    }
  }
  finish(job_, job_.others({}));
}

TEST_P(Stop, ForGoodIsNoticedAndTheZombieIsFenced) {
  const auto survivors = job_.others({GetParam().slot});
  const auto begin = steady_clock::now();
  frozen().signal(SIGSTOP);
  for (FaultWorker* survivor : survivors) {
    ASSERT_TRUE(eventually(kLong, [&] { return generation(*survivor) == 2; })) << job_.text();
  }
  const auto took = steady_clock::now() - begin;
  // The server bears as much more silence as heartbeats have been late: several times that.
  EXPECT_LT(took, std::chrono::seconds(kSlowness) + 6 * punctuality_.worst()) << job_.text();

  frozen().signal(SIGCONT);
  EXPECT_EQ(frozen().wait(kLong), 3) << job_.text();
  EXPECT_THAT(frozen().log().told("failed "), HasSubstr("evicted")) << job_.text();
  EXPECT_EQ(generation(frozen()), 1U) << "the zombie took part";
  ASSERT_TRUE(FaultJob::await_steps(survivors, 50)) << job_.text();
  EXPECT_EQ(generation(*survivors.front()), 2U) << "the zombie changed the view";
  finish(job_, survivors);
}

INSTANTIATE_TEST_SUITE_P(Workers, Stop,
                         ::testing::Values(Frozen{0, "allreduce", 1000},
                                           Frozen{2, "allreduce", 1000},
                                           Frozen{1, "allocated", 500000}),
                         [](const auto& tested) {
                           return tested.param.kind + std::to_string(tested.param.slot);
                         });

}  // namespace
}  // namespace elastic::testing
