// Another user of the machine holds two thousand silent connections to each listener of a job.
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fault/fault_job.hpp"
#include "fault/process_facts.hpp"
#include "fault/step_checks.hpp"
#include "integration/job.hpp"

namespace elastic::testing {
namespace {

constexpr int kConnections = 2000;
constexpr std::int64_t kLongestStepUs = 1'000'000;

class Flood : public ::testing::TestWithParam<std::string> {
 protected:
  Flood() : job_({.np = 3, .transport = GetParam()}) {
    job_.start_all(arguments());
    EXPECT_TRUE(FaultJob::await_steps(job_.others({}), 10)) << job_.text();
  }
  std::vector<std::string> arguments() const {
    return {"kind=train", "until=" + job_.end_file(), "pause_us=1000"};
  }
  std::vector<std::string> command() {
    std::vector<std::string> result{FAULT_FLOOD, std::to_string(kConnections)};
    std::vector<pid_t> owners{job_.server_pid()};
    for (std::size_t slot = 0; slot < 3; ++slot) owners.push_back(job_.worker(slot).pid());
    for (const pid_t owner : owners) {
      for (const auto port : listening_ports(owner)) {
        result.push_back("tcp:" + std::to_string(port));
      }
      for (const auto& name : listening_names(owner)) result.push_back("local:" + name);
    }
    return result;
  }

  FaultJob job_;
};

TEST_P(Flood, HoldsUpNeitherStepsNorJoinsNorRecovery) {
  const std::vector<std::string> doors = command();
  ASSERT_EQ(doors.size(), 2U + 1U + 3U * 2U) << "each member listens on TCP and locally";
  const Job flood(doors, job_.folder() / "flood");
  ASSERT_TRUE(eventually(kLong, [&] { return flood.output().starts_with("floods"); }));

  std::vector<std::size_t> gone;
  for (std::size_t round = 0; round < 2; ++round) {
    ASSERT_TRUE(FaultJob::await_line(job_.start(arguments()), "entered")) << job_.text();
    ASSERT_TRUE(FaultJob::await_steps(job_.others(gone), 20)) << job_.text();
    job_.worker(round).kill();
    gone.push_back(round);
    ASSERT_TRUE(FaultJob::await_steps(job_.others(gone), 20)) << job_.text();
  }
  finish(job_, job_.others(gone));
  for (FaultWorker* worker : job_.others(gone)) {
    for (const Step& step : worker->log().steps()) {
      EXPECT_LT(step.microseconds, kLongestStepUs) << "step " << step.index << "\n" << job_.text();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Over, Flood, ::testing::Values("auto", "tcp"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace elastic::testing
