// Jobs whose collectives are MPI's, under mpirun: right sums, and a clear end where the job would
// have to be elastic.
#include <cstdlib>
#include <set>
#include <signal.h>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/job.hpp"
#include "integration/open_mpi.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class MpiJobTest : public ::testing::Test {
 protected:
  std::vector<std::string> environment() const {
    std::vector<std::string> variables = open_mpi_settings();
    variables.insert(variables.end(),
                     {"ELASTIC_BACKEND=mpi", "XDG_RUNTIME_DIR=" + folder_.path().string()});
    return variables;
  }
  std::string folder() const { return folder_.path().string(); }
  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }

  void expect_right(const char* program) {
    Job job({MPIRUN, "-np", "3", program, folder()}, file("output"), environment());
    EXPECT_EQ(job.wait(milliseconds(90000)), 0) << job.output();
    std::set<std::string> hashes;
    for (const char* rank : {"0", "1", "2"}) hashes.insert(read_file(file(rank)));
    EXPECT_EQ(hashes.size(), 1U) << "ranks have other results";
  }

  ScratchFolder folder_;
};

TEST_F(MpiJobTest, MakesEveryCollective) {
  expect_right(COLLECTIVES_CHECK);
}

TEST_F(MpiJobTest, TakesEveryIntegerType) {
  expect_right(INTEGER_TYPES_CHECK);
}

TEST_F(MpiJobTest, HasEveryRankInEverySum) {
  Job job({MPIRUN, "-np", "3", DIGIT_STREAM, "mixed", "100", "131072", "5", folder()},
          file("output"), environment());
  EXPECT_EQ(job.wait(milliseconds(90000)), 0) << job.output();
  for (const char* slot : {"0", "1", "2"}) {
    const std::string log = read_file(file(slot));
    EXPECT_THAT(log, EndsWith("end\n")) << job.output();
    EXPECT_THAT(log, Not(HasSubstr("0"))) << "a rank is missing in a sum of three digits";
  }
}

TEST_F(MpiJobTest, ALossIsAClearErrorOnEverySurvivor) {
  Job job({MPIRUN, "--enable-recovery", "-np", "3", DIGIT_STREAM, "blocking", "100000", "131072",
           "5", folder()},
          file("output"), environment());
  ASSERT_TRUE(eventually(milliseconds(60000), [&] {
    return read_file(file("1")).size() > 100 || job.wait(milliseconds(2)).has_value();
  })) << job.output();
  const pid_t pid = std::atoi(read_file(file("pid.1")).c_str());
  ASSERT_GT(pid, 1) << job.output();
  ::kill(pid, SIGKILL);
  ASSERT_TRUE(job.wait(milliseconds(90000)).has_value()) << "hangs\n" << job.output();
  const std::string output = job.output();
  // The second to notice may see a view without the first.
  const std::string error = "MPI_COMM_WORLD has 3 processes, but generation ";
  const auto first = output.find(error);
  ASSERT_NE(first, std::string::npos) << output;
  EXPECT_NE(output.find(error, first + 1), std::string::npos) << "one survivor only\n" << output;
  EXPECT_THAT(output, HasSubstr("MPI serves a fixed membership; for a job that goes on when"));
}

TEST_F(MpiJobTest, IsRefusedUnderElasticrun) {
  Job job({ELASTICRUN, "-np", "2", "--max-restarts", "0", DIGIT_STREAM, "blocking", "1", "1", "1",
           folder()},
          file("output"), environment());
  const auto status = job.wait(milliseconds(40000));
  ASSERT_TRUE(status.has_value()) << "hangs\n" << job.output();
  EXPECT_NE(*status, 0);
  EXPECT_THAT(job.output(), HasSubstr("the backend 'mpi' is for workers that mpirun starts"));
}

}  // namespace
}  // namespace elastic::testing
