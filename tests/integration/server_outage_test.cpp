// Agents whose server ends and is started again, or is not: workers that die meanwhile, and those
// that finish. Real processes.
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/own_server.hpp"

namespace elastic::testing {
namespace {

using ::testing::HasSubstr;

class ServerOutageTest : public OwnServerTest {
 protected:
  /// The only worker of the second of two hosts dies, and no server is there.
  void lose_worker_and_server() {
    begin_on(2);
    const pid_t worker = worker_of(1);
    ASSERT_GT(worker, 0);
    kill_server();
    ::kill(worker, SIGKILL);
  }
  void expect_replacement() const {
    ASSERT_TRUE(trained(3)) << agents_[1]->output();
    finish();
    for (const auto& agent : agents_) EXPECT_EQ(agent->wait(kTimeLimit), 0) << agent->output();
    EXPECT_THAT(agents_[1]->output(), HasSubstr("starting it again (restart 1 of 3)"));
  }
};

/// The server is away for less time than a launcher waits for its answer.
TEST_F(ServerOutageTest, TheOnlyWorkerOfAHostThatDiesMeanwhileIsReplaced) {
  lose_worker_and_server();
  start_server(2);
  expect_replacement();
}

TEST_F(ServerOutageTest, TheOnlyWorkerOfAHostIsReplacedAfterALongOutageToo) {
  lose_worker_and_server();
  ASSERT_TRUE(eventually(kTimeLimit, [&] {
    return agents_[1]->output().find(
               "No worker is left here: the server is waited for, for 600 s "
               "in all") != std::string::npos;
  })) << agents_[1]->output();
  start_server(2);
  expect_replacement();
}

TEST_F(ServerOutageTest, ATrainingThatEndsMeanwhileIsTakenForFinished) {
  begin_on(2);
  kill_server();
  finish();
  for (const auto& agent : agents_) {
    EXPECT_EQ(agent->wait(kTimeLimit), 0) << agent->output();
    EXPECT_THAT(agent->output(),
                HasSubstr("elasticrun: the workers of this host ended with code 0 while the job's "
                          "server was away: taken for finished"));
  }
}

}  // namespace
}  // namespace elastic::testing
