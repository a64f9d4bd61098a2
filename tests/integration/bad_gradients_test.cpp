// NaN and Inf in gradients: what Options::non_finite says happens, on all ranks alike.
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/job.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr int kWorkers = 3;

/// The steps as all workers told them; empty if they differ.
std::string outcome(const std::string& policy) {
  const ScratchFolder folder;
  const std::string path = folder.path().string();
  Job job({ELASTICRUN, "-np", std::to_string(kWorkers), BAD_GRADIENTS, path}, path + "/output",
          {"XDG_RUNTIME_DIR=" + path, "ELASTIC_NON_FINITE=" + policy});
  EXPECT_EQ(job.wait(milliseconds(60000)), 0) << job.output();
  std::set<std::string> told;
  for (int slot = 0; slot < kWorkers; ++slot) {
    told.insert(read_file(path + "/gradients." + std::to_string(slot)));
  }
  EXPECT_EQ(told.size(), 1U) << job.output();
  if (policy == "skip") {
    EXPECT_THAT(job.output(), HasSubstr("NaN or Inf in the sum of gradient 'second', element 7"));
  }
  return told.size() == 1 ? *told.begin() : std::string();
}

TEST(BadGradients, Pass) {
  EXPECT_EQ(outcome("pass"), "1 used\n2 used\n3 used\n4 used\n5 used\n6 used\n7 failed\n8 used\n");
}

TEST(BadGradients, AreSkipped) {
  EXPECT_EQ(outcome("skip"),
            "1 used\n2 used\n3 skipped\n4 used\n5 skipped\n6 used\n7 failed\n8 skipped\n");
}

TEST(BadGradients, AreAnErrorThatNamesRankAndGradient) {
  const std::string told = outcome("error");
  EXPECT_THAT(told, HasSubstr("3 not finite 1 elastic: NaN or Inf in gradient 'second' of rank 1, "
                              "element 7"));
  EXPECT_THAT(told, HasSubstr("5 not finite -1 elastic: NaN or Inf in the sum of gradient 'first', "
                              "element 2: it overflowed"));
  EXPECT_THAT(told, HasSubstr("6 used"));
  EXPECT_THAT(told, HasSubstr("8 not finite 2 elastic: NaN or Inf in gradient 'second' of rank 2"))
      << "rank 1's of step 7, whose sum failed, is not named";
}

TEST(BadGradients, AreTheSameErrorOnRanksThatEndWithIt) {
  for (int run = 0; run < 20; ++run) {
    const ScratchFolder folder;
    const std::string path = folder.path().string();
    Job job({ELASTICRUN, "-np", std::to_string(kWorkers), "--max-restarts", "0", BAD_GRADIENTS,
             path, "exit"},
            path + "/output", {"XDG_RUNTIME_DIR=" + path, "ELASTIC_NON_FINITE=error"});
    EXPECT_NE(job.wait(milliseconds(60000)).value_or(0), 0) << job.output();
    for (int slot = 0; slot < kWorkers; ++slot) {
      ASSERT_THAT(read_file(path + "/gradients." + std::to_string(slot)),
                  HasSubstr("3 not finite 1 elastic: NaN or Inf in gradient 'second' of rank 1, "))
          << "run " << run;
    }
  }
}

TEST(BadGradients, AnotherPolicyIsRefused) {
  const ScratchFolder folder;
  const std::string path = folder.path().string();
  Job job({ELASTICRUN, "-np", "1", "--max-restarts", "0", BAD_GRADIENTS, path}, path + "/output",
          {"XDG_RUNTIME_DIR=" + path, "ELASTIC_NON_FINITE=ignore"});
  EXPECT_NE(job.wait(milliseconds(60000)).value_or(0), 0);
  EXPECT_THAT(job.output(), HasSubstr("ELASTIC_NON_FINITE is 'ignore': must be one of pass skip"));
}

}  // namespace
}  // namespace elastic::testing
