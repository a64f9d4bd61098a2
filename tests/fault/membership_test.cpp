// Several workers die at once or one after another, down to the last one and below the minimum; and
// many come and go without a descriptor or a thread being left behind.
#include <chrono>
#include <cstdio>
#include <ostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/fault_job.hpp"
#include "fault/process_facts.hpp"
#include "fault/step_checks.hpp"

namespace elastic::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

struct Victims {
  std::string name;
  std::vector<std::size_t> at_once;
  std::vector<std::size_t> meanwhile;  ///< while the view changes because of those

  std::vector<std::size_t> all() const {
    std::vector<std::size_t> result = at_once;
    result.insert(result.end(), meanwhile.begin(), meanwhile.end());
    return result;
  }
  friend std::ostream& operator<<(std::ostream& out, const Victims& victims) {
    return out << victims.name;
  }
};

class SeveralDie : public ::testing::TestWithParam<Victims> {
 protected:
  static void one_round(const std::string& transport, microseconds meanwhile) {
    SCOPED_TRACE(transport + ", the rest " + std::to_string(meanwhile.count()) + " us later");
    const Victims& victims = GetParam();
    FaultJob job({.np = 5, .transport = transport});
    job.start_all({"kind=mixed", "elements=20000", "until=" + job.end_file()});
    ASSERT_TRUE(FaultJob::await_steps(job.others({}), 10)) << job.text();
    for (const std::size_t victim : victims.at_once) job.worker(victim).kill();
    // The moment is what is swept; there is no event to wait for.
    std::this_thread::sleep_for(meanwhile);
    for (const std::size_t victim : victims.meanwhile) job.worker(victim).kill();
    const auto survivors = job.others(victims.all());
    ASSERT_TRUE(eventually(kLong, [&] {
      const auto& steps = survivors.front()->log().steps();
      return steps.back().contributors == survivors.size();
    })) << job.text();
    EXPECT_TRUE(FaultJob::await_steps(survivors, 10));
    finish(job, survivors);
  }
};

TEST_P(SeveralDie, TheOthersGoOn) {
  const std::uint64_t seed = first_seed();
  std::mt19937_64 random(seed);
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  for (int i = 0; i < runs(4) && !HasFailure(); ++i) {
    one_round(i % 2 == 0 ? "shm" : "tcp", microseconds(random() % 4000));
  }
}

INSTANTIATE_TEST_SUITE_P(Which, SeveralDie,
                         ::testing::Values(Victims{"neighbours", {1, 2}, {}},
                                           Victims{"apart", {1, 3}, {}},
                                           Victims{"the_first_two", {0, 1}, {}},
                                           Victims{"a_third_meanwhile", {2, 3}, {0}},
                                           Victims{"down_to_one", {0, 2}, {4, 1}},
                                           Victims{"down_to_one_at_once", {0, 1, 2, 3}, {}}),
                         ::testing::PrintToStringParamName());

TEST(BelowTheMinimum, IsABoundedWaitAndThenAClearError) {
  FaultJob job(
      {.np = 3,
       .min_np = 3,
       .server_options = {"--below-minimum-timeout-ms", std::to_string(1000 * kSlowness)}});
  job.start_all({"kind=train", "until=" + job.end_file(), "pause_us=1000"});
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 20)) << job.text();
  job.worker(1).kill();
  for (FaultWorker* survivor : job.others({1})) {
    EXPECT_EQ(survivor->wait(kLong), 3) << job.text();
    EXPECT_THAT(survivor->log().told("failed "), HasSubstr("below_minimum"));
    EXPECT_THAT(survivor->log().told("failed "), HasSubstr("only 2 workers are left, min_np is 3"));
  }
  expect_same_steps(job.others({1}));
}

TEST(BelowTheMinimum, GoesOnWhenAJoinerComes) {
  FaultJob job({.np = 3, .min_np = 3});
  const std::vector<std::string> arguments{"kind=train", "until=" + job.end_file(),
                                           "pause_us=1000"};
  job.start_all(arguments);
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 20)) << job.text();
  job.worker(0).kill();
  job.start(arguments);
  ASSERT_TRUE(FaultJob::await_line(job.worker(3), "entered")) << job.text();
  ASSERT_TRUE(FaultJob::await_steps(job.others({0}), 20)) << job.text();
  finish(job, job.others({0}));
}

TEST(ComingAndGoing, LeavesNoDescriptorAndNoThreadBehind) {
  FaultJob job({.np = 3});
  const std::vector<std::string> arguments{"kind=train", "until=" + job.end_file(),
                                           "pause_us=1000"};
  job.start_all(arguments);
  const std::vector<FaultWorker*> stayers{&job.worker(0), &job.worker(1)};
  ASSERT_TRUE(FaultJob::await_steps(stayers, 20)) << job.text();
  const auto replace_the_last = [&] {
    const std::size_t last = job.size() - 1;
    job.worker(last).kill();
    FaultWorker& fresh = job.start(arguments);
    ASSERT_TRUE(FaultJob::await_line(fresh, "entered")) << job.text();
    ASSERT_TRUE(FaultJob::await_steps({&job.worker(0), &job.worker(1), &fresh}, 20)) << job.text();
  };
  // Once before it counts: what is made on first use is made.
  replace_the_last();
  std::vector<pid_t> watched{job.server_pid()};
  for (FaultWorker* stayer : stayers) watched.push_back(stayer->pid());
  std::vector<Footprint> before;
  for (const pid_t pid : watched) before.push_back(footprint(pid));
  for (int i = 0; i < runs(6, kMostJoiners) && !HasFatalFailure(); ++i) replace_the_last();
  for (std::size_t i = 0; i < watched.size(); ++i) {
    Footprint now;
    EXPECT_TRUE(
        eventually(kLong, [&] { return (now = footprint(watched[i])).is_within(before[i]); }))
        << "process " << watched[i] << " had " << before[i].descriptors << " descriptors and "
        << before[i].threads << " threads, and has " << now.descriptors << " and " << now.threads;
  }
  finish(job, {&job.worker(0), &job.worker(1), &job.worker(job.size() - 1)});
}

}  // namespace
}  // namespace elastic::testing
