// The disk with the server's journal is full: joiners are refused, and the job goes on.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/fault_job.hpp"
#include "fault/step_checks.hpp"
#include "integration/tiny_disk.hpp"

namespace elastic::testing {
namespace {

using ::testing::HasSubstr;

TEST(FullDisk, OfTheJournalMakesTheServerRefuseJoinersOnly) {
  TinyDisk disk(std::size_t{1} << 20);
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small disk needs root";
  FaultJob job({.np = 4, .journal_folder = disk.path()});
  const std::vector<std::string> arguments{"kind=train", "until=" + job.end_file(),
                                           "pause_us=1000"};
  job.start_all(arguments);
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 20)) << job.text();
  disk.fill();
  FaultWorker& joiner = job.start(arguments);
  EXPECT_EQ(joiner.wait(kLong), 3) << job.text();
  EXPECT_THAT(joiner.log().told("failed "), HasSubstr("disk is full")) << job.text();
  const auto members = job.others({4});
  ASSERT_TRUE(FaultJob::await_steps(members, 20)) << job.text();
  EXPECT_EQ(generation(*members.front()), 1U);

  // The journal has reserved the space that records of deaths need.
  job.worker(1).kill();
  const auto survivors = job.others({1, 4});
  ASSERT_TRUE(eventually(kLong, [&] { return generation(*survivors.front()) == 2; })) << job.text();
  ASSERT_TRUE(FaultJob::await_steps(survivors, 20)) << job.text();

  disk.make_room();
  ASSERT_TRUE(FaultJob::await_line(job.start(arguments), "entered")) << job.text();
  ASSERT_TRUE(FaultJob::await_steps(job.others({1, 4}), 20)) << job.text();
  finish(job, job.others({1, 4}));
}

}  // namespace
}  // namespace elastic::testing
