// Ranks that do not come to a call: what those that wait for them are told, and how the job ends.
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "integration/launched_job.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;

/// At the beginning of its warnings.
constexpr const char* kServer = "elastic warning: job";
constexpr milliseconds kDeadline = milliseconds(30000) * kHangFactor;

class StallTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::mkfifo(pipe().c_str(), 0600), 0); }

  std::string pipe() const { return (job_.folder() / "pipe").string(); }

  /// `options` are elasticrun's.
  void start(std::vector<std::string> options, const std::string& mode,
             std::vector<std::string> environment = {"ELASTIC_STALL_WARNING_MS=100"}) {
    options.insert(options.end(), {"--max-restarts", "0", STALLED_RANKS, mode, pipe()});
    job_.start(options, std::move(environment));
  }

  /// How often lines with `what` and `text` in them were written.
  int count(const std::string& what, const std::string& text) const {
    std::istringstream lines(job_.output());
    int found = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.find(what) != std::string::npos && line.find(text) != std::string::npos) ++found;
    }
    return found;
  }
  bool comes(const std::string& what, const std::string& text) const {
    return eventually(kDeadline, [&] { return count(what, text) > 0; });
  }
  void let_the_last_rank_go_on() { const std::ofstream opened(pipe()); }

  LaunchedJob job_;
};

TEST_F(StallTest, TheServerSaysOnceWhoHasNotEntered) {
  start({"-np", "3"}, "late");
  EXPECT_TRUE(comes(kServer, "rank 2 has not entered allreduce #21 for ")) << job_.output();
  EXPECT_TRUE(comes(kServer, "it has completed 20 calls")) << job_.output();
  let_the_last_rank_go_on();
  EXPECT_TRUE(comes(kServer, "the job goes on: allreduce #21 was waited for ")) << job_.output();
  let_the_last_rank_go_on();
  EXPECT_EQ(job_.launcher().wait(kDeadline), 0) << job_.output();
  EXPECT_EQ(count("] complete", ""), 3) << job_.output();
  EXPECT_EQ(count("warning", "has not entered"), count(kServer, "has not entered"))
      << "the ranks repeat it\n"
      << job_.output();
}

TEST_F(StallTest, NamedCallsAreToldOfInOneWarning) {
  start({"-np", "2"}, "named");
  EXPECT_TRUE(comes(kServer, "rank 1 has not entered named allreduce 'grad' for "))
      << job_.output();
  let_the_last_rank_go_on();
  EXPECT_TRUE(comes(kServer, "goes on: named allreduce 'grad' was")) << job_.output();
  EXPECT_EQ(count("rank 0 warning", "grad"), 0) << job_.output();
  let_the_last_rank_go_on();
  EXPECT_EQ(job_.launcher().wait(kDeadline), 0) << job_.output();
}

/// Rank 1, which is in no call, is none of the group.
TEST_F(StallTest, AGroupWaitsForItsMembersAlone) {
  const std::string other = pipe() + "_of_rank_1";
  ASSERT_EQ(::mkfifo(other.c_str(), 0600), 0);
  start({"-np", "3"}, "group");
  const std::string call = "named alltoall 'x' of the group 'every 2 from 0' of ranks 0 and 2 ";
  EXPECT_TRUE(comes(kServer, "rank 2 has not entered " + call + "for ")) << job_.output();
  let_the_last_rank_go_on();
  EXPECT_TRUE(comes(kServer, "goes on: " + call + "was waited for ")) << job_.output();
  std::ofstream(other).close();
  EXPECT_EQ(job_.launcher().wait(kDeadline), 0) << job_.output();
}

TEST_F(StallTest, NamedOnOneRankAndUnnamedOnTheOthersEndsOnAllWithWhatEachIsIn) {
  start({"-np", "3", "--stall-timeout-ms", "1500"}, "mixed");
  EXPECT_NE(job_.launcher().wait(kDeadline).value_or(0), 0) << job_.output();
  const std::string text =
      "rank 0 waits in named allreduce 'grad', ranks 1 and 2 in allreduce #21, for ";
  EXPECT_GE(count(kServer, text), 1) << job_.output();
  EXPECT_EQ(count("timed out: ", text), 3) << job_.output();
  EXPECT_GE(count("the job failed: ", text), 1) << job_.output();
}

/// The rank that comes late may find what the others had sent before the job failed, and complete
/// that call, but no other.
TEST_F(StallTest, AStallThatIsTooLongEndsTheJob) {
  start({"-np", "3"}, "away", {"ELASTIC_STALL_TIMEOUT_MS=300"});
  const std::string text = "rank 2 has not entered allreduce #21 for ";
  EXPECT_TRUE(eventually(kDeadline, [&] { return count("timed out: ", text) == 2; }))
      << job_.output();
  let_the_last_rank_go_on();
  EXPECT_NE(job_.launcher().wait(kDeadline).value_or(0), 0) << job_.output();
  EXPECT_EQ(count("timed out: ", text), 3) << job_.output();
  EXPECT_EQ(count(kServer, text), 0) << "the warning is not due\n" << job_.output();
}

/// Others wait while it does, but for no call of the program.
TEST_F(StallTest, ARankThatLoadsTheStateIsNoStall) {
  start({"-np", "3"}, "load", {"ELASTIC_STALL_WARNING_MS=100", "ELASTIC_STALL_TIMEOUT_MS=300"});
  // Returns when the last rank opens the pipe.
  std::ofstream opened(pipe());
  // The test is that nothing happens, for three times as long as a stall may last.
  std::this_thread::sleep_for(milliseconds(900));
  EXPECT_EQ(count("has not entered", ""), 0) << job_.output();
  opened.close();
  EXPECT_EQ(job_.launcher().wait(kDeadline), 0) << job_.output();
}

}  // namespace
}  // namespace elastic::testing
