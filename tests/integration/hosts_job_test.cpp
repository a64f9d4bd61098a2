// Jobs on several hosts: hosts that cannot be reached, that are lost, that come and go, and the end
// of it all. Real processes; in place of ssh is a script that runs a host's command here.
#include <csignal>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "base/secret.hpp"
#include "integration/ended.hpp"
#include "integration/trainer_job.hpp"

namespace elastic::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr std::chrono::milliseconds kTimeLimit = std::chrono::milliseconds(30000) * kHangFactor;

class HostsJobTest : public ::testing::Test {
 protected:
  HostsJobTest() {
    std::ofstream(ssh_) << "#!/bin/sh\n"
                           "if [ -e "
                        << scratch_.path().string()
                        << "/$1.down ]; then\n"
                           "  echo \"connect to host $1: refused\" >&2; exit 255\n"
                           "fi\n"
                           "case $1 in hung-*) exec sleep 1000; esac\n"
                           "NAME_OF_HOST=$1 exec sh -c \"$2\"\n";
    ::chmod(ssh_.c_str(), 0755);
  }

  void start(std::vector<std::string> options) {
    options.insert(options.end(), {"--ssh", ssh_.string()});
    job_ = std::make_unique<TrainerJob>(options);
  }
  void take_down(const std::string& host) { std::ofstream(scratch_.path() / (host + ".down")); }
  void list(const std::string& lines) {
    std::ofstream(fresh_) << lines;
    std::filesystem::rename(fresh_, file_);
  }
  nlohmann::json status() {
    std::string text;
    job_->control({"status", "--json"}, &text);
    return nlohmann::json::parse(text, nullptr, false);
  }
  /// "a:2": how many workers each connected host has, of the members.
  std::vector<std::string> hosts() {
    std::vector<std::string> found;
    const nlohmann::json now = status();
    if (!now.is_object()) return found;
    for (const auto& launcher : now["launchers"]) {
      if (!launcher["connected"]) continue;
      found.push_back(std::string(launcher["host"]) + ":" +
                      std::to_string(int(launcher["running"])));
    }
    return found;
  }
  bool has_hosts(const std::vector<std::string>& wanted, std::size_t members) {
    return eventually(kTimeLimit,
                      [&] { return hosts() == wanted && status()["world_size"] == members; });
  }
  bool says(const std::string& text) {
    return eventually(kTimeLimit, [&] { return job_->output().find(text) != std::string::npos; });
  }
  /// Kills each worker of a host's only slot as soon as it is a member, until the host is in
  /// quarantine.
  void kill_until_quarantine(const std::string& slot) {
    std::string killed;
    const bool paused = eventually(kTimeLimit, [&] {
      const nlohmann::json now = status();
      for (const auto& member : now["members"]) {
        if (member["slot"] != slot || member["incarnation"] == killed) continue;
        killed = member["incarnation"];
        ::kill(member["pid"], SIGKILL);
      }
      return !now["launchers"][1]["quarantine"].is_null();
    });
    ASSERT_TRUE(paused) << job_->output();
  }
  /// The elasticrun of a host; 0: there is none.
  static pid_t agent(const std::string& host) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string command = read_file(entry.path() / "cmdline");
      // Its guardian has the same command, and is its child.
      if (command.find(std::string("elasticrun\0--join", 17)) == std::string::npos ||
          command.find(std::string("--host-name") + '\0' + host + '\0') == std::string::npos) {
        continue;
      }
      const std::string stat = read_file(entry.path() / "stat");
      if (stat.empty()) continue;  // it has ended meanwhile
      const pid_t parent = std::atoi(stat.substr(stat.rfind(')') + 4).c_str());
      if (read_file("/proc/" + std::to_string(parent) + "/cmdline") == command) continue;
      return std::atoi(entry.path().filename().c_str());
    }
    return 0;
  }

  const ScratchFolder scratch_;
  const std::filesystem::path ssh_ = scratch_.path() / "remote";
  const std::filesystem::path file_ = scratch_.path() / "hosts";
  const std::filesystem::path fresh_ = scratch_.path() / "hosts.new";
  std::unique_ptr<TrainerJob> job_;
};

TEST_F(HostsJobTest, RunsOnAllHostsAndEndsWithTheJob) {
  start({"--hosts", "one-a:2,one-b:1"});
  ASSERT_TRUE(job_->wait_until_trained(3)) << job_->output();
  EXPECT_TRUE(has_hosts({"one-a:2", "one-b:1"}, 3));
  const nlohmann::json now = status();
  EXPECT_EQ(now["members"][2]["slot"], "slot-1.0") << "ranks follow the list";
  std::string table;
  EXPECT_TRUE(job_->control({"status"}, &table));
  EXPECT_THAT(table, HasSubstr("hosts: one-a (0) 2 of 2, one-b (1) 1 of 1\n"));
  std::string refusal;
  EXPECT_FALSE(job_->control({"add", "1"}, &refusal));
  EXPECT_THAT(refusal, HasSubstr("add a host or slots to the list of --hostfile or --discover"));
  EXPECT_EQ(job_->finish(), 0) << job_->output();
}

TEST_F(HostsJobTest, SaysThatAHostIsNamedTwice) {
  list("same-a slots=1\nsame-a slots=1\n");
  start({"--hostfile", file_.string()});
  ASSERT_TRUE(job_->wait_until_trained(2)) << job_->output();
  EXPECT_THAT(job_->output(), HasSubstr("host same-a is named twice: 2 slots"));
  EXPECT_EQ(job_->finish(), 0) << job_->output();
}

TEST_F(HostsJobTest, AHostInQuarantineKeepsItsAgentAndItsWorkersGoElsewhere) {
  start({"--hosts", "sick-a:3,sick-b:1", "-np", "2", "--max-np", "3"});
  ASSERT_TRUE(job_->wait_until_trained(2)) << job_->output();
  kill_until_quarantine("slot-1.0");
  EXPECT_TRUE(has_hosts({"sick-a:2", "sick-b:0"}, 2)) << job_->output();
  const pid_t before = agent("sick-b");
  ::kill(before, SIGKILL);
  EXPECT_TRUE(eventually(kTimeLimit, [&] {
    const pid_t now = agent("sick-b");
    return now != 0 && now != before;
  }));
  EXPECT_TRUE(has_hosts({"sick-a:2", "sick-b:0"}, 2)) << job_->output();
  EXPECT_TRUE(job_->control({"pardon", "sick-b"}));
  EXPECT_TRUE(job_->control({"add", "1"})) << "there is room for three";
  EXPECT_TRUE(has_hosts({"sick-a:2", "sick-b:1"}, 3)) << job_->output();
  EXPECT_EQ(job_->finish(), 0) << job_->output();
}

TEST_F(HostsJobTest, AJobThatIsDoneWhileAHostIsInQuarantineHasNotFailed) {
  start({"--hosts", "ill-a:1,ill-b:1"});
  ASSERT_TRUE(job_->wait_until_trained(2)) << job_->output();
  kill_until_quarantine("slot-1.0");
  EXPECT_TRUE(has_hosts({"ill-a:1", "ill-b:0"}, 1)) << job_->output();
  EXPECT_EQ(job_->finish(), 0) << job_->output();
}

TEST_F(HostsJobTest, TheEventLogTellsTheStory) {
  const auto file = scratch_.path() / "events";
  std::ofstream(file) << "kept\n";
  start({"--hosts", "log-a:1,log-b:2", "-np", "2", "--event-log", file.string()});
  ASSERT_TRUE(job_->wait_until_trained(2)) << job_->output();
  ASSERT_TRUE(job_->control({"drain", "log-a"}));
  ASSERT_TRUE(has_hosts({"log-b:2"}, 2)) << job_->output();
  EXPECT_EQ(job_->finish(), 0) << job_->output();
  std::ifstream lines(file);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "kept");
  std::vector<std::string> story;
  while (std::getline(lines, line)) {
    const nlohmann::json event = nlohmann::json::parse(line);
    EXPECT_THAT(std::string(event["time"]), ::testing::MatchesRegex("20.*T.*\\....Z"));
    const std::string name = event["event"];
    if (name.starts_with("host_")) story.push_back(name + " " + std::string(event["host"]));
    if (name == "phase") story.push_back(event["phase"]);
    if (name == "workers_requested") story.push_back(name);
    if (name == "view") {
      EXPECT_EQ(event["slots"].size(), event["workers"]);
    }
  }
  EXPECT_THAT(story, ::testing::IsSupersetOf({"host_connected log-a", "host_connected log-b",
                                              "running", "host_limited log-a", "workers_requested",
                                              "host_disconnected log-a", "done"}));
}

TEST_F(HostsJobTest, TheSecretIsInNoCommandAndNoEnvironment) {
  const auto file = scratch_.path() / "secret";
  write_secret(file, '7');
  const std::string secret(64, '7');
  start({"--hosts", "two-a:1", "--secret-file", file.string()});
  ASSERT_TRUE(job_->wait_until_trained(1)) << job_->output();
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    EXPECT_THAT(read_file(entry.path() / "cmdline"), Not(HasSubstr(secret)));
    EXPECT_THAT(read_file(entry.path() / "environ"), Not(HasSubstr(secret)));
  }
  EXPECT_EQ(job_->finish(), 0) << job_->output();
}

TEST_F(HostsJobTest, TheJobBeginsWithoutAHostThatIsDown) {
  take_down("three-b");
  start({"--hosts", "three-a:1,three-b:1,three-c:1"});
  ASSERT_TRUE(job_->wait_until_trained(2)) << job_->output();
  EXPECT_TRUE(
      says("host three-b: it cannot be reached, or the connection was cut off: connect to host "
           "three-b: refused"));
  EXPECT_EQ(job_->finish(), 0) << job_->output();
}

TEST_F(HostsJobTest, WhereNoHostCanBeReachedItSaysWhy) {
  take_down("down-a");
  take_down("down-b");
  const Ended ended =
      run({ELASTICRUN, "--hosts", "down-a:1,down-b:1", "--ssh", ssh_.string(), "/bin/true"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.output, HasSubstr("no host is left to run workers; host down-a: it cannot"));
}

TEST_F(HostsJobTest, ACommandThatIsNoSshIsNamed) {
  for (const std::string program : {"false", "true"}) {
    const Ended ended = run({ELASTICRUN, "--hosts", "no-a:1", "--start-timeout-ms", "1000", "--ssh",
                             program, "/bin/true"});
    EXPECT_EQ(ended.status, 1);
    EXPECT_THAT(ended.output,
                HasSubstr("host no-a: the command '" + program +
                          " no-a' (--ssh) exited with code " + (program == "true" ? "0" : "1") +
                          ", and no elasticrun came from there; try: " + program + " no-a true"));
  }
}

TEST_F(HostsJobTest, AHostWhoseLoginHangsIsGivenUpAfterTheStartTimeout) {
  const Ended ended = run({ELASTICRUN, "--hosts", "hung-a:1", "--start-timeout-ms", "1000", "--ssh",
                           ssh_.string(), "/bin/true"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.output, HasSubstr("no host is left to run workers; host hung-a: its elasticrun "
                                      "did not reach the job's server within 1 s"));
}

TEST_F(HostsJobTest, WorkersOfALostHostAreStartedElsewhere) {
  start({"--hosts", "four-a:2,four-b:1,four-c:2", "-np", "3"});
  ASSERT_TRUE(job_->wait_until_trained(3)) << job_->output();
  ASSERT_TRUE(has_hosts({"four-a:1", "four-b:1", "four-c:1"}, 3));
  take_down("four-b");
  ::kill(agent("four-b"), SIGKILL);
  ASSERT_TRUE(says("host four-b: its elasticrun died of signal 9"));
  EXPECT_TRUE(has_hosts({"four-a:2", "four-c:1"}, 3)) << job_->output();
  EXPECT_EQ(job_->finish(), 0) << job_->output();
}

TEST_F(HostsJobTest, TheLastLineSaysWhatBecameOfMissingWorkers) {
  start({"--hosts", "last-a:2,last-b:1", "--max-restarts", "0"});
  ASSERT_TRUE(job_->wait_until_trained(3)) << job_->output();
  const nlohmann::json now = status();
  for (const auto& member : now["members"]) {
    if (member["slot"] == "slot-1.0") ::kill(member["pid"], SIGKILL);
  }
  ASSERT_TRUE(has_hosts({"last-a:2"}, 2)) << job_->output();
  EXPECT_EQ(job_->finish(), 0) << job_->output();
  EXPECT_TRUE(
      says("the job began with 3 workers and ended with 2: worker slot-1.0 of host last-b "
           "was lost"))
      << job_->output();
}

TEST_F(HostsJobTest, HostsComeAndGoAsTheFileIsEdited) {
  list("five-a slots=1\n");
  start({"--hostfile", file_.string()});
  ASSERT_TRUE(job_->wait_until_trained(1)) << job_->output();
  list("five-a slots=1\nfive-b slots=2 # new\n");
  ASSERT_TRUE(has_hosts({"five-a:1", "five-b:2"}, 3)) << job_->output();
  list("five-b slots=two\n");
  ASSERT_TRUE(says("line 1: 'slots=two' has no number of slots; going on with the list"));
  list("# none\n");
  ASSERT_TRUE(says("the list of hosts is empty; going on with the list before"));
  list(std::string(2'000'000, '\0'));
  ASSERT_TRUE(says("is longer than 1048576 bytes, and is no list of hosts; going on"));
  std::filesystem::remove(file_);
  std::filesystem::create_directory(file_);
  ASSERT_TRUE(says("cannot be read: it is no regular file"));
  std::filesystem::remove(file_);
  list("five-b slots=1\n");
  ASSERT_TRUE(has_hosts({"five-b:1"}, 1)) << job_->output();
  EXPECT_TRUE(says("host five-a is not in the list any more"));
  EXPECT_EQ(job_->finish(), 0) << job_->output();
}

TEST_F(HostsJobTest, AScriptSaysWhichHostsThereAre) {
  list("six-a:1\n");
  start({"--discover", "cat " + file_.string()});
  ASSERT_TRUE(job_->wait_until_trained(1)) << job_->output();
  std::filesystem::remove(file_);
  ASSERT_TRUE(says("exited with code 1: cat: "));
  list("six-a:1\nsix-b:1\n");
  ASSERT_TRUE(has_hosts({"six-a:1", "six-b:1"}, 2)) << job_->output();
  EXPECT_EQ(job_->finish(), 0) << job_->output();
}

TEST_F(HostsJobTest, AListThatDoesNotComeIsWaitedForUntilTheStartTimeout) {
  const Ended ended = run({ELASTICRUN, "--discover", "exit 7", "-np", "2", "--start-timeout-ms",
                           "100", "--ssh", ssh_.string(), "/bin/true"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.output, HasSubstr("there was no list of hosts within 0.1 s"));
}

TEST_F(HostsJobTest, ADrainedHostIsReplacedFirst) {
  start({"--hosts", "seven-a:2,seven-b:2", "-np", "2"});
  ASSERT_TRUE(job_->wait_until_trained(2)) << job_->output();
  std::string said;
  EXPECT_FALSE(job_->control({"drain", "seven-x"}, &said));
  EXPECT_THAT(said,
              HasSubstr("no launcher of the host seven-x is connected; connected are: seven-a, "
                        "seven-b"));
  ASSERT_TRUE(job_->control({"drain", "seven-a"}, &said)) << said;
  EXPECT_THAT(said, HasSubstr("after 1 have come elsewhere"));
  ASSERT_TRUE(has_hosts({"seven-b:2"}, 2)) << job_->output();
  EXPECT_TRUE(says("host seven-a has been drained"));
  EXPECT_EQ(job_->finish(), 0) << job_->output();
}

/// The workers of the first one may be there still, or gone.
TEST_F(HostsJobTest, HostsThatAreDrainedOneAfterTheOtherAreNotAllDrained) {
  start({"--hosts", "both-a:2,both-b:2"});
  ASSERT_TRUE(job_->wait_until_trained(4)) << job_->output();
  std::string said;
  ASSERT_TRUE(job_->control({"drain", "both-a"}, &said)) << said;
  EXPECT_FALSE(job_->control({"drain", "both-b"}, &said));
  EXPECT_THAT(said, HasSubstr("cannot drain host both-b: 0 workers would be left, min_np is 1"));
  ASSERT_TRUE(has_hosts({"both-b:2"}, 2)) << job_->output();
  EXPECT_EQ(job_->finish(), 0) << job_->output();
}

TEST_F(HostsJobTest, AHostWhoseWorkersAreNeededLeavesOnASignalOnly) {
  start({"--hosts", "need-a:1,need-b:1", "--min-np", "2", "--drain-seconds", "1",
         "--below-minimum-timeout-ms", "500"});
  ASSERT_TRUE(job_->wait_until_trained(2)) << job_->output();
  std::string said;
  EXPECT_FALSE(job_->control({"drain", "need-b"}, &said));
  EXPECT_THAT(said, HasSubstr("cannot drain host need-b: 1 workers would be left, min_np is 2"));
  ::kill(agent("need-b"), SIGTERM);
  EXPECT_EQ(job_->launcher().wait(kTimeLimit), 1) << job_->output();
  const std::string output = job_->output();
  EXPECT_THAT(output, HasSubstr("stopped where they were; the job goes on without them"));
  const std::string refusal = "cannot remove rank";
  const auto first = output.find(refusal);
  ASSERT_NE(first, std::string::npos) << output;
  EXPECT_EQ(output.find(refusal, first + 1), std::string::npos) << output;
}

TEST_F(HostsJobTest, WorkersLeaveAHostThatIsToEnd) {
  const auto file = scratch_.path() / "notice";
  start({"--hosts", "end-a:2,end-b:2", "-np", "2", "--notice",
         "command:[ -e " + file.string() + ".$NAME_OF_HOST ] && echo 60"});
  ASSERT_TRUE(job_->wait_until_trained(2)) << job_->output();
  std::ofstream(file.string() + ".end-a");
  ASSERT_TRUE(has_hosts({"end-b:2"}, 2)) << job_->output();
  EXPECT_TRUE(says("says that this machine is to end in 60 s: its workers"));
  EXPECT_TRUE(says("host end-a has been drained"));
  EXPECT_EQ(job_->finish(), 0) << job_->output();
}

TEST_F(HostsJobTest, AJobMayHaveManyHosts) {
  std::string hosts = "many-0:1";
  for (int host = 1; host < 13; ++host) hosts += ",many-" + std::to_string(host) + ":1";
  start({"--hosts", hosts, "-np", "13"});
  ASSERT_TRUE(job_->wait_until_entered(13)) << job_->output();
  EXPECT_EQ(job_->finish(), 0) << job_->output();
}

TEST_F(HostsJobTest, APreparationThatFailsKeepsWorkersOffItsHost) {
  start({"--hosts", "eight-a:1,eight-b:1", "--prepare",
         "mkdir " + (scratch_.path() / "turn").string() + " 2>/dev/null || exit 7"});
  ASSERT_TRUE(job_->wait_until_trained(1)) << job_->output();
  EXPECT_TRUE(says(": --prepare failed there")) << job_->output();
  EXPECT_TRUE(says("--prepare: the command exited with code 7"));
  EXPECT_EQ(job_->finish(), 0) << job_->output();
}

TEST_F(HostsJobTest, NetworkAndPortsAreThoseOfTheWorkersOfAllHosts) {
  start({"--hosts", "net-a:1,net-b:1", "--network", "240.0.0.0/8"});
  EXPECT_TRUE(says("ELASTIC_NETWORK: this host has no address in 240.0.0.0/8"));
  EXPECT_EQ(job_->launcher().wait(kTimeLimit), 1) << job_->output();

  boost::asio::io_context io;
  const boost::asio::ip::tcp::acceptor holder(io, {boost::asio::ip::tcp::v4(), 0});
  const std::string port = std::to_string(holder.local_endpoint().port());
  start({"--hosts", "port-a:1,port-b:1", "--data-ports", port});
  EXPECT_TRUE(says("all of the ports " + port + "-" + port + " are in use"));
  EXPECT_EQ(job_->launcher().wait(kTimeLimit), 1) << job_->output();
}

TEST_F(HostsJobTest, AgentsAndWorkersEndWithTheLauncher) {
  start({"--hosts", "nine-a:1,nine-b:1"});
  ASSERT_TRUE(job_->wait_until_trained(2)) << job_->output();
  ::kill(job_->launcher().pid(), SIGKILL);
  const auto workers = job_->told("trained");
  EXPECT_TRUE(eventually(kTimeLimit, [&] {
    return agent("nine-a") == 0 && agent("nine-b") == 0 &&
           std::all_of(workers.begin(), workers.end(),
                       [](const auto& one) { return ::kill(one.first, 0) != 0; });
  }));
}

TEST_F(HostsJobTest, OnASignalTheJobStopsAtAStepBoundary) {
  start({"--hosts", "ten-a:1,ten-b:1"});
  ASSERT_TRUE(job_->wait_until_trained(2)) << job_->output();
  ::kill(job_->launcher().pid(), SIGTERM);
  EXPECT_EQ(job_->launcher().wait(kTimeLimit), 1) << job_->output();
  EXPECT_THAT(job_->output(), HasSubstr("stopped by SIGTERM"));
  for (const auto& [pid, result] : job_->told("result")) EXPECT_THAT(result, HasSubstr("stopped"));
}

TEST_F(HostsJobTest, AFileThatIsWrongFromTheStartEndsIt) {
  for (const char* lines : {"", "a slot=2\n"}) {
    const bool exists = *lines != '\0';
    if (exists) list(lines);
    const Ended ended =
        run({ELASTICRUN, "--hostfile", file_.string(), "--ssh", ssh_.string(), "/bin/true"});
    EXPECT_EQ(ended.status, 2);
    EXPECT_THAT(ended.output, HasSubstr(exists ? "'slot=2' is not slots=N" : "cannot be read"));
  }
}

TEST_F(HostsJobTest, RefusesWhatDoesNotGoTogether) {
  const auto refusal = [](const std::vector<std::string>& options) {
    std::vector<std::string> command = {ELASTICRUN};
    command.insert(command.end(), options.begin(), options.end());
    command.emplace_back("/bin/true");
    const Ended ended = run(command);
    EXPECT_NE(ended.status, 0);
    return ended.output;
  };
  EXPECT_THAT(refusal({"--hosts", "a:1", "-np", "2"}),
              HasSubstr("there are 1 slots, and 2 workers are needed"));
  EXPECT_THAT(refusal({"--hosts", "a:x"}), HasSubstr("--hosts: 'a:x': 'x' is no number of slots"));
  EXPECT_THAT(refusal({"--hosts", "a", "--hostfile", "f"}),
              HasSubstr("--hosts excludes --hostfile"));
  EXPECT_THAT(refusal({"--hosts", "a", "--join", "h:1"}), HasSubstr("--join does not go with"));
  EXPECT_THAT(refusal({"--hosts", "a", "--ssh", "no-such-ssh"}), HasSubstr("--ssh: no-such-ssh"));
  EXPECT_THAT(refusal({"--hosts", "a", "--env", "NO_SUCH"}), HasSubstr("--env NO_SUCH"));
  EXPECT_THAT(refusal({"--hosts", "a:2", "--min-np", "3"}), HasSubstr("--min-np"));
}

}  // namespace
}  // namespace elastic::testing
