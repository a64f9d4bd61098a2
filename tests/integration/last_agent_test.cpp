// SIGTERM to agents (elasticrun --join) of a job, up to the last one. Real processes.
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/own_server.hpp"

namespace elastic::testing {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class LastAgentTest : public OwnServerTest {
 protected:
  void terminate(std::size_t agent) const { ::kill(agents_[agent]->pid(), SIGTERM); }
  bool has_members(std::size_t count) const {
    return eventually(kTimeLimit, [&] { return status()["world_size"] == count; });
  }
};

TEST_F(LastAgentTest, TheWorkersOfTheLastOneMaySaveTheirState) {
  begin_on(2);
  terminate(0);
  EXPECT_EQ(agents_[0]->wait(kTimeLimit), 75) << agents_[0]->output();
  ASSERT_TRUE(has_members(1));
  terminate(1);
  EXPECT_EQ(agents_[1]->wait(kTimeLimit), 1) << agents_[1]->output();
  EXPECT_THAT(agents_[1]->output(),
              HasSubstr("no worker of another host would be left: the job stops at the next step "
                        "boundary"));
  EXPECT_THAT(agents_[1]->output(), HasSubstr("stopped by SIGTERM: the job's last workers ran on"));
  EXPECT_THAT(told("result"), Each(AnyOf(StartsWith("removed"), StartsWith("stopped"))));
  // Asked for every half a second, and told once: by the agent and in the server's log.
  const std::string refusal = "cannot remove rank 0";
  for (const std::string& output : {agents_[1]->output(), server_->output()}) {
    const auto first = output.find(refusal);
    ASSERT_NE(first, std::string::npos) << output;
    EXPECT_EQ(output.find(refusal, first + 1), std::string::npos) << output;
  }
}

TEST_F(LastAgentTest, TwoThatLeaveAtOnceDoNotStopTheJobOfAThird) {
  begin_on(3);
  for (const std::size_t agent : {0U, 1U}) terminate(agent);
  for (const std::size_t agent : {0U, 1U}) {
    EXPECT_EQ(agents_[agent]->wait(kTimeLimit), 75) << agents_[agent]->output();
  }
  ASSERT_TRUE(has_members(1));
  finish();
  EXPECT_EQ(agents_[2]->wait(kTimeLimit), 0) << agents_[2]->output();
}

/// As an element of a Slurm array that is started when the others have done the work.
TEST_F(LastAgentTest, OneThatComesAfterTheEndSaysThatItRanNothing) {
  begin_on(1);
  finish();
  ASSERT_EQ(agents_[0]->wait(kTimeLimit), 0) << agents_[0]->output();
  const auto late = agent("late", 1);
  EXPECT_EQ(late->wait(kTimeLimit), 0) << late->output();
  EXPECT_THAT(late->output(),
              HasSubstr("elasticrun: the job at " + port_.address() +
                        " was done before this elasticrun joined it, so no worker was started "
                        "here; one server serves one job: start a new server for another "
                        "training\n"));
  EXPECT_THAT(late->output(), ::testing::Not(HasSubstr("worker joined")));
  EXPECT_THAT(told("trained"), ::testing::SizeIs(1));
}

TEST_F(LastAgentTest, WhereAllLeaveAtOnceNoWorkerIsKilled) {
  begin_on(2);
  for (const std::size_t agent : {0U, 1U}) terminate(agent);
  for (const auto& agent : agents_) {
    EXPECT_THAT(agent->wait(kTimeLimit), AnyOf(0, 1, 75)) << agent->output();
  }
  EXPECT_THAT(told("result"), ::testing::SizeIs(2));
  EXPECT_THAT(told("result"), Each(AnyOf(StartsWith("removed"), StartsWith("stopped"))));
}

}  // namespace
}  // namespace elastic::testing
