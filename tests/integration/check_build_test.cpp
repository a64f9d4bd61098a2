// The report of elasticrun on features that are built and that work here, and the errors of workers
// that ask for others.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/ended.hpp"

namespace elastic::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

/// The environment of a machine with a CUDA driver of this kind, whatever this machine has.
std::vector<std::string> with_driver(std::vector<std::string> more = {}) {
  more.push_back("LD_LIBRARY_PATH=" CUDA_STAND_IN);
  return more;
}

std::string report(const std::vector<std::string>& environment = {}) {
  const Ended ended = run({ELASTICRUN, "--check-build"}, environment);
  EXPECT_EQ(ended.status, 0) << ended.output;
  return ended.output;
}

/// The error of a worker that is told to use NCCL.
std::string refusal(std::vector<std::string> environment = {}) {
  environment.emplace_back("ELASTIC_BACKEND=nccl");
  const Ended ended = run({ELASTICRUN, "-np", "1", "--max-restarts", "0", DIGIT_STREAM, "blocking",
                           "10", "1000", "1", "/nowhere"},
                          environment);
  EXPECT_GT(ended.status, 0) << "it works silently, or hangs\n" << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("the backend 'nccl'"));
  return ended.output;
}

TEST(CheckBuild, SaysWhatIsBuilt) {
  const std::string output = report();
  EXPECT_THAT(output, HasSubstr("backends  built  found here\n"));
  EXPECT_THAT(output, HasSubstr("\n  native  yes "));
#ifdef GLOO_IS_BUILT
  EXPECT_THAT(output, HasSubstr("\n  gloo    yes    Gloo 0."));
#else
  EXPECT_THAT(output, HasSubstr("\n  gloo    no     -\n"));
#endif
#ifdef NCCL_IS_BUILT
  EXPECT_THAT(output, HasSubstr("\n  nccl    yes    NCCL "));
#else
  EXPECT_THAT(output, HasSubstr("\n  nccl    no     -\n"));
#endif
  EXPECT_THAT(output, ContainsRegex("\n  CUDA devices  [0-9]+\n"));
}

TEST(CheckBuild, CountsDevices) {
  EXPECT_THAT(report(with_driver()),
              HasSubstr("devices\n  CUDA driver   for CUDA 13.0\n  CUDA devices  2\n"));
  EXPECT_THAT(report(with_driver({"CUDA_STAND_IN_ERROR=804"})),
              AllOf(HasSubstr("the CUDA driver does not work: cuInit: forward compatibility"),
                    HasSubstr("CUDA devices  0\n")));
}

#ifdef NCCL_IS_BUILT

TEST(CheckBuild, SaysWhichNcclItFinds) {
  EXPECT_THAT(report({"ELASTIC_NCCL_LIBRARY=" NCCL_STAND_IN}),
              HasSubstr("\n  nccl    yes    NCCL 2.28.9 in " NCCL_STAND_IN " (with shrink)\n"));
  EXPECT_THAT(report({"ELASTIC_NCCL_LIBRARY=" NCCL_STAND_IN, "NCCL_STAND_IN_VERSION=21713"}),
              HasSubstr("is NCCL 2.17.13. NCCL 2.18 or later is needed"));
  EXPECT_THAT(report({"ELASTIC_NCCL_LIBRARY=/nowhere/libnccl.so.2"}),
              HasSubstr("\n  nccl    yes    NCCL cannot be used: /nowhere/libnccl.so.2"));
}

TEST(NcclJob, SaysWhatIsMissing) {
  const std::string nccl = "ELASTIC_NCCL_LIBRARY=" NCCL_STAND_IN;
  EXPECT_THAT(refusal({"ELASTIC_NCCL_LIBRARY=/nowhere/libnccl.so.2"}),
              AllOf(HasSubstr("/nowhere/libnccl.so.2"), HasSubstr("2.18 or later is needed")));
  EXPECT_THAT(refusal({nccl, "NCCL_STAND_IN_VERSION=21713"}), HasSubstr("is NCCL 2.17.13"));
  EXPECT_THAT(refusal(with_driver({nccl, "CUDA_STAND_IN_DEVICES=0"})),
              AllOf(HasSubstr("it serves tensors on CUDA devices, and there is none"),
                    HasSubstr("ELASTIC_BACKEND=native")));
}

#else

TEST(NcclJob, SaysThatItWasNotBuilt) {
  EXPECT_THAT(refusal(), HasSubstr("this build was made without it"));
}

#endif

TEST(NcclJob, IsNeverServedInSilence) {
  EXPECT_THAT(refusal(), Not(HasSubstr("terminate called")));
}

}  // namespace
}  // namespace elastic::testing
