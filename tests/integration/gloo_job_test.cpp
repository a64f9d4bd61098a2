// Jobs whose collectives are Gloo's: as right as ours, and as elastic.
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/job.hpp"
#include "integration/one_kill.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

void expect_right(const char* program) {
  const ScratchFolder folder;
  Job job({ELASTICRUN, "-np", "3", "--max-restarts", "0", program, folder.path().string()},
          folder.path() / "output", {"ELASTIC_BACKEND=gloo", "ELASTIC_TRANSPORT=tcp"});
  EXPECT_EQ(job.wait(milliseconds(60000)), 0) << job.output();
  std::set<std::string> hashes;
  for (const char* rank : {"0", "1", "2"}) hashes.insert(read_file(folder.path() / rank));
  EXPECT_EQ(hashes.size(), 1U) << "ranks have other results";
}

TEST(GlooJob, MakesEveryCollective) {
  expect_right(COLLECTIVES_CHECK);
}

TEST(GlooJob, TakesEveryIntegerType) {
  expect_right(INTEGER_TYPES_CHECK);
}

class GlooKillTest : public ::testing::TestWithParam<Scenario> {};

TEST_P(GlooKillTest, SurvivorsAgreeOnEverySum) {
  several_kills(GetParam(), 3);
}

INSTANTIATE_TEST_SUITE_P(Streams, GlooKillTest,
                         ::testing::Values(Scenario{"blocking", "shm", false, "gloo"},
                                           Scenario{"mixed", "tcp", false, "gloo"},
                                           Scenario{"mixed", "tcp", true, "gloo"}),
                         [](const auto& param) {
                           return param.param.mode + "_" + param.param.transport +
                                  (param.param.encrypt ? "_encrypted" : "");
                         });

/// They could not do anything together.
TEST(MixedBackends, AreAMismatchThatNamesThem) {
  const ScratchFolder folder;
  const std::string worker = std::string("test $RANK = 0 && export ELASTIC_BACKEND=gloo; exec ") +
                             DIGIT_STREAM + " blocking 10 1000 1 " + folder.path().string();
  Job job({ELASTICRUN, "-np", "2", "--max-restarts", "0", "/bin/sh", "-c", worker},
          folder.path() / "output");
  // One may be gone with the error before the other has it, which then goes on alone.
  ASSERT_TRUE(job.wait(milliseconds(40000)).has_value()) << "hangs\n" << job.output();
  EXPECT_THAT(job.output(),
              HasSubstr("rank 0 called barrier, by gloo, but rank 1 called barrier."));
}

}  // namespace
}  // namespace elastic::testing
