// A worker that was given up while it was frozen comes back: it is fenced, and then rejoins.
#include <string>

#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/fault_job.hpp"
#include "fault/network_fixture.hpp"
#include "fault/step_checks.hpp"

namespace elastic::testing {
namespace {

class Rejoin : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Rejoin, AZombieReceivesTheStateAndTakesPartAgain) {
  FaultJob job({.np = 3, .evict_after = kUsualEviction});
  job.start_all({"kind=train", "until=" + job.end_file(), "pause_us=1000"});
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 20)) << job.text();
  FaultWorker& zombie = job.worker(GetParam());
  const auto survivors = job.others({GetParam()});
  for (int i = 0; i < runs(2) && !HasFailure(); ++i) {
    zombie.signal(SIGSTOP);
    ASSERT_TRUE(eventually(kLong, [&] {
      return survivors.front()->log().steps().back().contributors == 2;
    })) << job.text();
    const std::uint64_t without = generation(*survivors.front());
    ASSERT_TRUE(FaultJob::await_steps(survivors, 20)) << job.text();
    zombie.signal(SIGCONT);
    ASSERT_TRUE(eventually(kLong, [&] { return generation(zombie) > without; })) << job.text();
    ASSERT_TRUE(FaultJob::await_steps(job.others({}), 20)) << job.text();
    EXPECT_EQ(survivors.front()->log().steps().back().contributors, 3U);
  }
  job.ask_for_the_end();
  expect_end(job.others({}));
  expect_same_steps(survivors);
  expect_same_steps_but_missed_ones(zombie, survivors);
  if (HasFailure()) ADD_FAILURE() << job.text();
}

INSTANTIATE_TEST_SUITE_P(Workers, Rejoin, ::testing::Values(0, 2));

class RejoinOfASilentHost : public NetworkTest {};

TEST_F(RejoinOfASilentHost, WhenItsLinkIsBack) {
  FaultJob& job = make_job({.np = 3, .evict_after = kUsualEviction});
  job.start_all({"kind=train", "until=" + job.end_file(), "pause_us=1000"});
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 20)) << job.text();
  const auto survivors = job.others({1});
  hosts_->silence(host_of(1));
  ASSERT_TRUE(eventually(kLong, [&] {
    return survivors.front()->log().steps().back().contributors == 2;
  })) << job.text();
  hosts_->restore(host_of(1));
  ASSERT_TRUE(eventually(kLong, [&] {
    return survivors.front()->log().steps().back().contributors == 3;
  })) << job.text();
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 20)) << job.text();
  job.ask_for_the_end();
  expect_end(job.others({}));
  expect_same_steps(survivors);
  expect_same_steps_but_missed_ones(job.worker(1), survivors);
  if (HasFailure()) ADD_FAILURE() << job.text();
}

}  // namespace
}  // namespace elastic::testing
