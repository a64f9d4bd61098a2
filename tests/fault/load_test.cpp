// All cores are busy with other things: nobody may be given up for that.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/fault_job.hpp"
#include "fault/step_checks.hpp"

namespace elastic::testing {
namespace {

/// Two spinning processes for each core.
class BusyMachine {
 public:
  BusyMachine() {
    for (unsigned i = 0; i < 2 * std::max(1U, std::thread::hardware_concurrency()); ++i) {
      processes_.push_back(std::make_unique<Job>(
          std::vector<std::string>{"sh", "-c", "while :; do :; done"}, "/dev/null"));
    }
  }

 private:
  std::vector<std::unique_ptr<Job>> processes_;
};

class Load : public ::testing::TestWithParam<std::string> {};

TEST_P(Load, EvictsNobody) {
  FaultJob job({.np = 4, .evict_after = kUsualEviction});
  job.start_all({"kind=" + GetParam(), "until=" + job.end_file(), "elements=20000"});
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 10)) << job.text();
  {
    const BusyMachine busy;
    // The time under load is what is tested.
    std::this_thread::sleep_for(std::chrono::seconds(runs(5)));
  }
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 10)) << job.text();
  EXPECT_EQ(generation(job.worker(0)), 1U) << "somebody was given up";
  finish(job, job.others({}));
}

INSTANTIATE_TEST_SUITE_P(Of, Load, ::testing::Values("mixed", "train"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace elastic::testing
