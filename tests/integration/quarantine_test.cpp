// Hosts on which workers fail again and again, of jobs with several launchers. Real processes.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "integration/several_launchers.hpp"

namespace elastic::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

/// The job's own host is sound; the program on the other one fails at once while a file is there.
class QuarantineTest : public SeveralLaunchersTest {
 protected:
  void start_on_sound_host(const std::vector<std::string>& options) {
    std::vector<std::string> all = {"-np", "1", "--host-name", "sound"};
    all.insert(all.end(), options.begin(), options.end());
    start(all);
    ASSERT_TRUE(job_->wait_until_trained(1));
  }
  std::unique_ptr<Job> join_from_broken_host(const std::vector<std::string>& options) {
    std::ofstream(fault_) << "the disk is broken";
    std::vector<std::string> all = {"--host-name", "broken"};
    all.insert(all.end(), options.begin(), options.end());
    const std::string script = "echo $ELASTIC_LABEL >> " + starts_.string() + "; test -e " +
                               fault_.string() + " && exit 7; exec \"$0\" \"$@\"";
    std::vector<std::string> program = {"/bin/sh", "-c", script};
    for (const std::string& word : trainer()) program.push_back(word);
    return join(all, program);
  }
  void repair() { std::filesystem::remove(fault_); }
  /// Workers that were started on the broken host.
  std::size_t starts() const {
    const std::string lines = read_file(starts_);
    return static_cast<std::size_t>(std::count(lines.begin(), lines.end(), '\n'));
  }
  nlohmann::json quarantine() { return status()["launchers"][1]["quarantine"]; }
  bool comes_into_quarantine() {
    return eventually(kTimeLimit, [&] { return !quarantine().is_null(); });
  }
  bool has_member(const std::string& slot) {
    return eventually(kTimeLimit, [&] {
      const auto all = slots();
      return std::find(all.begin(), all.end(), slot) != all.end();
    });
  }

  const std::filesystem::path fault_ = scratch_.path() / "fault";
  const std::filesystem::path starts_ = scratch_.path() / "starts";
};

TEST_F(QuarantineTest, AHostWhereWorkersFailIsLeftInPeaceUntilItIsPardoned) {
  const auto events = scratch_.path() / "events";
  start_on_sound_host({"--slots", "3", "--max-np", "4", "--event-log", events.string()});
  const auto broken = join_from_broken_host({"-np", "1", "--slots", "2"});
  ASSERT_TRUE(comes_into_quarantine()) << broken->output();
  ASSERT_TRUE(has_members(2)) << broken->output();
  EXPECT_THAT(slots(), UnorderedElementsAre("slot-0", "slot-1"));
  EXPECT_EQ(starts(), 3U) << broken->output();

  std::string said;
  EXPECT_FALSE(add(2, &said)) << "only the other host has a slot to give";
  EXPECT_THAT(said, AllOf(HasSubstr("1 free slots"), HasSubstr("broken: 0 of 2, in quarantine")));
  EXPECT_TRUE(add(1, &said)) << said;
  ASSERT_TRUE(has_members(3));
  EXPECT_TRUE(job_->control({"status"}, &said));
  EXPECT_THAT(said, AllOf(HasSubstr("host broken is in quarantine for "),
                          HasSubstr("3 failures of its workers lately, the latest: slot-1.0 exited "
                                    "with code 7")));
  EXPECT_TRUE(job_->control({"top", "--once"}, &said));
  EXPECT_THAT(said, HasSubstr("host broken is in quarantine for "));
  EXPECT_EQ(starts(), 3U) << broken->output();

  EXPECT_FALSE(job_->control({"pardon", "nowhere"}, &said));
  EXPECT_THAT(said,
              HasSubstr("no host of the job is called nowhere; connected are: sound, broken"));
  repair();
  EXPECT_TRUE(job_->control({"pardon", "broken"}, &said));
  EXPECT_THAT(said, HasSubstr("host broken is out of quarantine"));
  EXPECT_TRUE(quarantine().is_null());
  EXPECT_TRUE(job_->control({"pardon", "broken"}, &said));
  EXPECT_THAT(said, HasSubstr("host broken is not in quarantine"));
  EXPECT_TRUE(add(1, &said)) << said;
  EXPECT_TRUE(has_member("slot-1.0")) << broken->output();
  EXPECT_THAT(read_file(events),
              AllOf(HasSubstr("\"event\":\"host_quarantined\",\"host\":\"broken\""),
                    HasSubstr("\"event\":\"host_released\",\"host\":\"broken\"")));
  EXPECT_EQ(job_->finish(), 0) << job_->output();
  EXPECT_EQ(broken->wait(kTimeLimit), 0) << broken->output();
}

TEST_F(QuarantineTest, WithoutRoomElsewhereAWorkerWaitsForThePausesEnd) {
  start_on_sound_host({"--slots", "1", "--max-np", "2", "--quarantine-seconds", "3"});
  const auto broken = join_from_broken_host({"-np", "1"});
  ASSERT_TRUE(comes_into_quarantine()) << broken->output();
  repair();
  EXPECT_TRUE(has_member("slot-1.0")) << broken->output();
  EXPECT_THAT(job_->output(), HasSubstr("host broken is out of quarantine: its time is over"));
  EXPECT_EQ(job_->finish(), 0) << job_->output();
  EXPECT_EQ(broken->wait(kTimeLimit), 0) << broken->output();
}

TEST_F(QuarantineTest, ALauncherThatJoinsFromAHostInQuarantineStartsNoWorkers) {
  start_on_sound_host({"--slots", "2", "--max-np", "3"});
  const auto broken = join_from_broken_host({"-np", "1"});
  ASSERT_TRUE(comes_into_quarantine()) << broken->output();
  const auto again = join_from_broken_host({"-np", "1"});
  repair();
  ASSERT_TRUE(eventually(kTimeLimit, [&] { return status()["launchers"].size() == 3; }));
  EXPECT_EQ(starts(), 3U);
  std::string said;
  EXPECT_TRUE(job_->control({"pardon", "1"}, &said)) << "a launcher's number names its host, too";
  EXPECT_THAT(said,
              HasSubstr("all 2 hosts that are called broken (1, 2) are out of quarantine, and "
                        "their failures are forgotten"));
  EXPECT_TRUE(has_member("slot-2.0")) << again->output();
  EXPECT_EQ(job_->finish(), 0) << job_->output();
}

TEST_F(QuarantineTest, EvictionsCountOnceAndDrainsNever) {
  start_on_sound_host({"--slots", "1", "--max-np", "3"});
  for (int drained = 0; drained < 3; ++drained) {
    const auto leaves = join({"-np", "1", "--host-name", "other"});
    ASSERT_TRUE(has_members(2)) << leaves->output();
    ::kill(leaves->pid(), SIGTERM);
    ASSERT_EQ(leaves->wait(kTimeLimit), 75) << leaves->output();
  }
  const auto other = join({"-np", "1", "--host-name", "other"});
  for (int evicted = 0; evicted < 3; ++evicted) {
    ASSERT_TRUE(has_members(2)) << other->output();
    EXPECT_TRUE(quarantine().is_null()) << quarantine();
    const nlohmann::json member = status()["members"][1];
    ::kill(member["pid"], SIGSTOP);
    ASSERT_TRUE(has_members(1));
    ::kill(member["pid"], SIGKILL);
  }
  EXPECT_TRUE(comes_into_quarantine()) << job_->output();
  EXPECT_EQ(job_->finish(), 0) << job_->output();
}

TEST_F(QuarantineTest, AHostAloneIsNeverInQuarantine) {
  start({"-np", "2", "--max-restarts", "5"});
  ASSERT_TRUE(job_->wait_until_trained(2));
  for (std::size_t killed = 1; killed <= 4; ++killed) {
    ::kill(job_->pid(1), SIGKILL);
    ASSERT_TRUE(job_->wait_until_trained(2 + killed)) << job_->output();
  }
  EXPECT_TRUE(status()["launchers"][0]["quarantine"].is_null());
  EXPECT_EQ(job_->finish(), 0) << job_->output();
}

}  // namespace
}  // namespace elastic::testing
