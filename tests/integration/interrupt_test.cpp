// InterruptCheck: an exception ends a wait, and the other ranks go on. And workers that end while
// calls are under way. Real processes.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "integration/job.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;

class InterruptTest : public ::testing::TestWithParam<std::string> {};

TEST_P(InterruptTest, OneRankEndsAndTheOthersGoOn) {
  const ScratchFolder scratch;
  for (const char* transport : {"shm", "tcp"}) {
    const ScratchFolder marks;
    Job job({ELASTICRUN, "-np", "3", "--max-restarts", GetParam() == "joiner" ? "1" : "0",
             INTERRUPTED_RANKS, GetParam(), marks.path().string()},
            scratch.path() / "output",
            {"XDG_RUNTIME_DIR=" + scratch.path().string(),
             std::string("ELASTIC_TRANSPORT=") + transport});
    const auto status = job.wait(milliseconds(40000) * kHangFactor);
    EXPECT_EQ(status.value_or(-1), 0) << transport << "\n" << job.output();
  }
}

INSTANTIATE_TEST_SUITE_P(Waits, InterruptTest,
                         ::testing::Values("small", "large", "named", "shutdown", "signals", "turn",
                                           "thrown", "joiner", "beside_calls"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace elastic::testing
