// Several launchers for one job, each as on a host of its own: where workers are started, how a
// host leaves, and what its loss means. Real processes.
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "integration/ended.hpp"
#include "integration/several_launchers.hpp"

namespace elastic::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using JoinedLauncherTest = SeveralLaunchersTest;

TEST_F(JoinedLauncherTest, ItsWorkersJoinAndAddedOnesGoWhereThereIsRoom) {
  start({"-np", "2", "--max-np", "8", "--slots", "2", "--host-name", "first"});
  ASSERT_TRUE(job_->wait_until_trained(2));
  const auto second = join({"-np", "1", "--slots", "3", "--host-name", "second"});
  ASSERT_TRUE(job_->wait_until_trained(3)) << second->output();
  std::string said;
  EXPECT_FALSE(add(3, &said));
  EXPECT_THAT(said, AllOf(HasSubstr("2 free slots"), HasSubstr("first: 2 of 2"),
                          HasSubstr("second: 1 of 3")));
  EXPECT_TRUE(add(2));
  ASSERT_TRUE(job_->wait_until_trained(5));
  EXPECT_THAT(slots(), ::testing::UnorderedElementsAre("slot-0", "slot-1", "slot-1.0", "slot-1.1",
                                                       "slot-1.2"));
  EXPECT_EQ(status()["launchers"][1], (nlohmann::json{{"number", 1},
                                                      {"host", "second"},
                                                      {"slots", 3},
                                                      {"running", 3},
                                                      {"connected", true},
                                                      {"quarantine", nullptr}}));
  EXPECT_EQ(job_->finish(), 0) << job_->output();
  EXPECT_EQ(second->wait(kTimeLimit), 0) << second->output();
}

TEST_F(JoinedLauncherTest, ADeadWorkerIsReplacedOnItsHost) {
  start({"-np", "1", "--max-np", "4", "--slots", "1"});
  ASSERT_TRUE(job_->wait_until_trained(1));
  const auto second = join({"-np", "1"});
  ASSERT_TRUE(job_->wait_until_trained(2));
  const nlohmann::json now = status();
  for (const auto& member : now["members"]) {
    if (member["slot"] == "slot-1.0") ::kill(member["pid"], SIGKILL);
  }
  ASSERT_TRUE(job_->wait_until_trained(3)) << second->output();
  EXPECT_EQ(job_->finish(), 0) << job_->output();
  EXPECT_EQ(second->wait(kTimeLimit), 0) << second->output();
}

TEST_F(JoinedLauncherTest, EndsSoonAfterItsWorkersWhereTheElasticrunWithTheServerIsGone) {
  start({"-np", "1", "--max-np", "4"});
  ASSERT_TRUE(job_->wait_until_trained(1));
  const auto second =
      join({"-np", "1", "--start-timeout-ms", "1000", "--env", "ELASTIC_VIEW_TIMEOUT_MS=1000",
            "--env", "ELASTIC_INIT_TIMEOUT_MS=1000"});
  ASSERT_TRUE(job_->wait_until_trained(2)) << second->output();
  ::kill(job_->launcher().pid(), SIGKILL);
  EXPECT_EQ(second->wait(kTimeLimit), 1) << second->output();
  EXPECT_THAT(second->output(), HasSubstr("the job's server does not come back"));
}

TEST_F(JoinedLauncherTest, TheLastLineIsAboutTheWorkersOfOneHost) {
  start({"-np", "2", "--max-np", "4", "--max-restarts", "0"});
  ASSERT_TRUE(job_->wait_until_trained(2));
  const auto second = join({"-np", "1"});
  ASSERT_TRUE(job_->wait_until_trained(3));
  ::kill(job_->pid(1), SIGKILL);
  ASSERT_TRUE(has_members(2));
  EXPECT_EQ(job_->finish(), 0) << job_->output();
  EXPECT_THAT(job_->output(),
              HasSubstr("on this host the job began with 2 workers and ended with 1: worker 1"));
  EXPECT_EQ(second->wait(kTimeLimit), 0) << second->output();
}

TEST_F(JoinedLauncherTest, OnSigtermItsWorkersAreReplacedWhereThereIsRoom) {
  start({"-np", "2", "--max-np", "4", "--slots", "3"});
  ASSERT_TRUE(job_->wait_until_trained(2));
  const auto second = join({"-np", "2"});
  ASSERT_TRUE(job_->wait_until_trained(4));
  ::kill(second->pid(), SIGTERM);
  EXPECT_EQ(second->wait(kTimeLimit), 75) << second->output();
  EXPECT_TRUE(has_members(3));
  EXPECT_THAT(slots(), ::testing::UnorderedElementsAre("slot-0", "slot-1", "slot-2"));
  EXPECT_EQ(job_->finish(), 0) << job_->output();
}

TEST_F(JoinedLauncherTest, OnSigtermItsWorkersLeaveAndTheJobGoesOn) {
  start({"-np", "2", "--max-np", "4", "--slots", "2"});
  ASSERT_TRUE(job_->wait_until_trained(2));
  const auto second = join({"-np", "2"});
  ASSERT_TRUE(job_->wait_until_trained(4));
  ::kill(second->pid(), SIGTERM);
  EXPECT_EQ(second->wait(kTimeLimit), 75) << second->output();
  EXPECT_THAT(second->output(), HasSubstr("have left the job, which goes on"));
  EXPECT_TRUE(has_members(2));
  std::string shown;
  EXPECT_TRUE(job_->control({"status"}, &shown));
  EXPECT_THAT(shown, HasSubstr(" (1) drained\n"));
  EXPECT_EQ(job_->finish(), 0) << job_->output();
}

TEST_F(JoinedLauncherTest, WhereItIsKilledItsWorkersGoAndItsPlaceIsFree) {
  start({"-np", "2", "--max-np", "4", "--slots", "2"});
  ASSERT_TRUE(job_->wait_until_trained(2));
  const auto second = join({"-np", "2"});
  ASSERT_TRUE(job_->wait_until_trained(4));
  ::kill(second->pid(), SIGKILL);
  EXPECT_TRUE(has_members(2));
  std::string said;
  EXPECT_FALSE(add(1, &said));
  EXPECT_THAT(said, HasSubstr("0 free slots"));
  const auto third = join({"-np", "2"});
  ASSERT_TRUE(has_members(4)) << third->output();
  EXPECT_EQ(job_->finish(), 0) << job_->output();
  EXPECT_EQ(third->wait(kTimeLimit), 0) << third->output();
}

TEST_F(JoinedLauncherTest, SaysWhyItCannotJoin) {
  start({"-np", "1"});
  ASSERT_TRUE(job_->wait_until_trained(1));
  const auto other = scratch_.path() / "other";
  write_secret(other, '8');
  const auto end_of = [&](const std::vector<std::string>& options) {
    std::vector<std::string> command = {ELASTICRUN, "-np", "1"};
    command.insert(command.end(), options.begin(), options.end());
    command.emplace_back("/bin/true");
    return run(command);
  };
  const Ended wrong_secret = end_of({"--join", address(), "--secret-file", other.string()});
  EXPECT_EQ(wrong_secret.status, 3);
  EXPECT_THAT(wrong_secret.output, HasSubstr("cannot join the job: "));
  EXPECT_THAT(wrong_secret.output, HasSubstr("secret"));
  const Ended other_job =
      end_of({"--join", address(), "--secret-file", secret_.string(), "--job", "another"});
  EXPECT_EQ(other_job.status, 3);
  EXPECT_THAT(other_job.output, HasSubstr("not of job 'another'"));
  const Ended absent = end_of(
      {"--join", "127.0.0.1:1", "--secret-file", secret_.string(), "--start-timeout-ms", "1"});
  EXPECT_EQ(absent.status, 69);
  EXPECT_THAT(absent.output, HasSubstr("cannot join the job: 127.0.0.1:1: "));
  EXPECT_EQ(job_->finish(), 0) << job_->output();
}

TEST_F(JoinedLauncherTest, TakesTheSecretFromStdin) {
  start({"-np", "1", "--max-np", "2"});
  ASSERT_TRUE(job_->wait_until_trained(1));
  const Job second({"/bin/sh", "-c",
                    "exec " ELASTICRUN " --join " + address() + " --secret-stdin -np 1 " +
                        ELASTIC_TRAINER + " " + job_->folder().string() + " < " + secret_.string()},
                   scratch_.path() / "output");
  EXPECT_TRUE(job_->wait_until_trained(2)) << second.output();
  EXPECT_EQ(job_->finish(), 0) << job_->output();
}

}  // namespace
}  // namespace elastic::testing
