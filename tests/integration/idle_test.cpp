// A job that is idle between operations does nothing but send heartbeats.
#include <string>

#include <gtest/gtest.h>

#include "integration/job.hpp"

namespace elastic::testing {
namespace {

TEST(IdleTest, OnlyTheControlThreadWakesUp) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer has a thread of its own in each process, which wakes up";
#endif
  const ScratchFolder folder;
  Job job({ELASTICRUN, "-np", "2", "--max-restarts", "0", IDLE_RANKS}, folder.path() / "output",
          {"XDG_RUNTIME_DIR=" + folder.path().string()});
  const auto status = job.wait(std::chrono::milliseconds(100000));
  ASSERT_TRUE(status.has_value()) << "hangs\n" << job.output();
  EXPECT_EQ(*status, 0) << job.output();
  // The output shows that the right threads were counted.
  EXPECT_NE(job.output().find("elastic-coord"), std::string::npos) << job.output();
  EXPECT_NE(job.output().find("elastic-control"), std::string::npos) << job.output();
}

}  // namespace
}  // namespace elastic::testing
