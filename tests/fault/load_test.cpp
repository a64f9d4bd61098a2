// All cores are busy with other programs: no worker may be given up for that.
#include <algorithm>
#include <chrono>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/fault_job.hpp"
#include "fault/step_checks.hpp"

namespace elastic::testing {
namespace {

/// Two spinning processes for each core, and at least four.
class BusyMachine {
 public:
  BusyMachine() {
    for (unsigned i = 0; i < std::max(4U, 2 * std::thread::hardware_concurrency()); ++i) {
      processes_.push_back(std::make_unique<Job>(
          std::vector<std::string>{"sh", "-c", "while :; do :; done"}, "/dev/null"));
    }
  }

 private:
  std::vector<std::unique_ptr<Job>> processes_;
};

struct Loaded {
  std::string kind;
  std::chrono::seconds time;  ///< under load: that is what is tested

  friend std::ostream& operator<<(std::ostream& out, const Loaded& loaded) {
    return out << loaded.kind;
  }
};

class Load : public ::testing::TestWithParam<Loaded> {};

TEST_P(Load, EvictsNoMember) {
  FaultJob job({.np = 4, .evict_after = kUsualEviction});
  job.start_all({"kind=" + GetParam().kind, "until=" + job.end_file(), "elements=20000"});
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 10)) << job.text();
  {
    const BusyMachine busy;
    // The time under load is what is tested.
    std::this_thread::sleep_for(GetParam().time);
  }
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 10)) << job.text();
  EXPECT_EQ(generation(job.worker(0)), 1U) << "a worker was given up\n" << job.text();
  finish(job, job.others({}));
}

INSTANTIATE_TEST_SUITE_P(Of, Load,
                         ::testing::Values(Loaded{"mixed", std::chrono::seconds(20)},
                                           Loaded{"train", std::chrono::seconds(5)}),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace elastic::testing
