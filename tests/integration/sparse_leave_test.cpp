// A member that cannot take part in the second exchange of a sparse_allreduce must not begin the
// first one again: the others are in the second. It leaves the job. Real processes.
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "integration/job.hpp"

namespace elastic::testing {
namespace {

class SparseLeaveTest : public ::testing::TestWithParam<std::string> {};

TEST_P(SparseLeaveTest, OneWithoutMemoryLeavesAndTheOthersHaveTheirSum) {
  const ScratchFolder scratch;
  const ScratchFolder marks;
  Job job({ELASTICRUN, "-np", "3", "--max-restarts", "0", SPARSE_LEAVER, marks.path().string()},
          scratch.path() / "output",
          {"XDG_RUNTIME_DIR=" + scratch.path().string(), "ELASTIC_TRANSPORT=" + GetParam()});
  const auto status = job.wait(std::chrono::milliseconds(60000));
  ASSERT_TRUE(status.has_value()) << "hangs\n" << job.output();
  EXPECT_EQ(*status, 0) << job.output();
  for (const char* mark : {"left", "0", "1"}) {
    EXPECT_TRUE(std::filesystem::exists(marks.path() / mark)) << mark << "\n" << job.output();
  }
}

INSTANTIATE_TEST_SUITE_P(Over, SparseLeaveTest, ::testing::Values("shm", "tcp"),
                         [](const auto& transport) { return transport.param; });

}  // namespace
}  // namespace elastic::testing
