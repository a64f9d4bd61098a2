// The size of buckets is found by real processes under elasticrun, while workers die.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/job.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

/// 1.8 MiB a step and less, in buckets of 1 MiB at first.
void sums_are_right(int ranks, int dying, const std::string& found) {
  const ScratchFolder folder;
  Job job({ELASTICRUN, "-np", std::to_string(ranks), "--max-restarts", "0", AUTOTUNE_CHECK,
           folder.path().string(), std::to_string(dying)},
          folder.path() / "output",
          {"XDG_RUNTIME_DIR=" + folder.path().string(), "ELASTIC_AUTOTUNE=1",
           "ELASTIC_BUCKET_BYTES=1M", "ELASTIC_LOG_LEVEL=info"});
  const auto status = job.wait(milliseconds(60000) * kHangFactor);
  ASSERT_TRUE(status.has_value()) << "hangs\n" << job.output();
  EXPECT_EQ(*status, 0) << job.output();
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == dying) continue;
    EXPECT_EQ(read_file(folder.path() / std::to_string(rank)), "end\n") << "rank " << rank;
  }
  EXPECT_THAT(job.output(), HasSubstr("autotune: with buckets of 256 KiB a step of " + found));
}

TEST(Autotune, ChangesNoSum) {
  sums_are_right(3, -1, "3 ranks");
}

TEST(Autotune, GoesOnWithoutAWorkerThatDies) {
  sums_are_right(3, 2, "2 ranks");
}

TEST(Autotune, BeginsAnewUnderAnotherRankZero) {
  sums_are_right(3, 0, "2 ranks");
}

}  // namespace
}  // namespace elastic::testing
