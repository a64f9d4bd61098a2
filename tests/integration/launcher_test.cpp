#include <climits>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <signal.h>
#include <sstream>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/unique_fd.hpp"
#include "integration/job.hpp"
#include "rendezvous/launcher/job_file.hpp"
#include "rendezvous/launcher/process_identity.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Far more than anything here takes, on a busy machine too.
constexpr std::chrono::milliseconds kTimeLimit = std::chrono::milliseconds(20000) * kHangFactor;

/// elasticrun with a private place for its job files, so that tests do not see each other's jobs.
class LauncherTest : public ::testing::Test {
 protected:
  std::vector<std::string> with_elasticrun(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), ELASTICRUN);
    return arguments;
  }
  std::string file(const std::string& name) const { return (scratch_.path() / name).string(); }

  std::string jobs_folder() const {
    return launcher::jobs_folder(file("elastic-" + std::to_string(::getuid())));
  }

  /// Starts elasticrun; what it and its workers write comes together in a file.
  std::unique_ptr<Job> start(const std::vector<std::string>& arguments) {
    return std::make_unique<Job>(with_elasticrun(arguments), file("log-" + std::to_string(++runs_)),
                                 std::vector{"XDG_RUNTIME_DIR=" + scratch_.path().string()});
  }

  /// Runs to the end; the exit code, or -1.
  int run(const std::vector<std::string>& arguments) {
    const auto job = start(arguments);
    const auto code = job->wait(kTimeLimit);
    output_ = job->output();
    return code.value_or(-1);
  }
  static bool says(const Job& job, const std::string& text) {
    return eventually(kTimeLimit, [&] { return job.output().find(text) != std::string::npos; });
  }

  /// The process ids that a script wrote into `name`, one to a line, once there are `count`.
  std::vector<pid_t> pids_in(const std::string& name, std::size_t count) const {
    std::vector<pid_t> pids;
    EXPECT_TRUE(eventually(kTimeLimit,
                           [&] {
                             pids.clear();
                             std::istringstream lines(read_file(file(name)));
                             for (pid_t pid = 0; lines >> pid;) pids.push_back(pid);
                             return pids.size() >= count;
                           }))
        << "only " << pids.size() << " of " << count << " processes";
    return pids;
  }
  static void expect_gone(const std::vector<pid_t>& pids) {
    for (const pid_t pid : pids) {
      EXPECT_TRUE(eventually(kTimeLimit, [&] { return !launcher::start_time_of(pid); }))
          << pid << " is left";
    }
  }

  ScratchFolder scratch_;
  int runs_ = 0;
  std::string output_;  ///< of the last `run`
};

TEST_F(LauncherTest, PutsTheSlotInFrontOfEveryLine) {
  EXPECT_EQ(run({"-np", "2", "/bin/sh", "-c", "echo out $RANK; echo err $RANK >&2; printf end"}),
            1);
  for (const char* line : {"[0] out 0\n", "[0] end\n", "[1] out 1\n", "[1] end\n"}) {
    EXPECT_THAT(output_, HasSubstr(line));
  }
  EXPECT_THAT(output_, HasSubstr("[0] err 0\n"));
  EXPECT_THAT(output_, HasSubstr("[1] err 1\n"));
  EXPECT_THAT(output_, HasSubstr("never called elastic::init"));
}

TEST_F(LauncherTest, KeepsLinesOfManyWorkersWhole) {
  run({"-np", "4", "/bin/sh", "-c",
       "i=0; while [ $i -lt 200 ]; do echo aaaaaaaaaaaaaaaaaaaa; i=$((i+1)); done"});
  std::istringstream lines(output_);
  int whole = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("[")) continue;
    ASSERT_EQ(line.substr(3), " aaaaaaaaaaaaaaaaaaaa");
    ++whole;
  }
  EXPECT_EQ(whole, 800);
}

TEST_F(LauncherTest, WritesOutputToFilesWhereAsked) {
  run({"-np", "2", "--output-dir", file("out"), "/bin/sh", "-c", "echo a $RANK; echo b $RANK >&2"});
  EXPECT_EQ(read_file(file("out/worker-1.out")), "a 1\n");
  EXPECT_EQ(read_file(file("out/worker-0.err")), "b 0\n");
  EXPECT_THAT(output_, Not(HasSubstr("a 1")));
}

TEST_F(LauncherTest, TellsWorkersWhereTheJobIs) {
  run({"-np", "1", "--job", "told", "--no-prefix", "/bin/sh", "-c",
       "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $ELASTIC_JOB $ELASTIC_SLOT "
       "$ELASTIC_LABEL $ELASTIC_RESTART; echo $ELASTIC_RENDEZVOUS; "
       "cat /proc/self/fd/$ELASTIC_SECRET_FD | wc -c"});
  EXPECT_THAT(output_,
              ::testing::ContainsRegex("0 1 0 1 told 0 slot-0 0\n127\\.0\\.0\\.1:[0-9]+\n65\n"));
}

TEST_F(LauncherTest, StopsRestartingAProgramThatDiesEachTime) {
  EXPECT_EQ(run({"-np", "1", "--max-restarts", "2", "/bin/sh", "-c",
                 "echo attempt $ELASTIC_RESTART; echo the cause >&2; kill -KILL $$"}),
            1);
  EXPECT_THAT(output_, HasSubstr("attempt 2\n"));
  EXPECT_THAT(output_, Not(HasSubstr("attempt 3\n")));
  EXPECT_THAT(output_, HasSubstr("worker 0 died of signal 9 (Killed); its last lines:"));
  EXPECT_THAT(output_, HasSubstr("    | the cause\n"));
  EXPECT_THAT(output_, HasSubstr("2 of 2 restarts are used"));
}

TEST_F(LauncherTest, DoesNotRestartAProgramThatFailsByItselfBeforeTheJobHasBegun) {
  EXPECT_EQ(run({"-np", "2", "/bin/sh", "-c",
                 "test $RANK = 1 || exec sleep 1000; echo attempt $ELASTIC_RESTART; exit 7"}),
            1);
  EXPECT_THAT(output_, HasSubstr("attempt 0\n"));
  EXPECT_THAT(output_, Not(HasSubstr("attempt 1\n")));
  EXPECT_THAT(output_,
              HasSubstr("elasticrun: worker 1 exited with code 7 before the job had begun\n"));
}

TEST_F(LauncherTest, NamesTheSignalThatAWorkerDiedOf) {
  EXPECT_EQ(run({"-np", "1", "--max-restarts", "0", "/bin/sh", "-c", "kill -SEGV $$"}), 1);
  EXPECT_THAT(output_, HasSubstr("worker 0 died of signal 11 (Segmentation fault)"));
}

TEST_F(LauncherTest, RefusesBadOptionsBeforeAnythingStarts) {
  EXPECT_EQ(run({"-np", "0", "/bin/sh"}), 2);
  EXPECT_THAT(output_, HasSubstr("-np"));
  EXPECT_EQ(run({"-np", "2", "--min-np", "3", "/bin/sh"}), 2);
  EXPECT_EQ(run({"-np", "1", "/no/such/program"}), 2);
  EXPECT_THAT(output_, HasSubstr("/no/such/program: No such file"));
  EXPECT_EQ(run({"-np", "1", "no-such-program"}), 2);
  EXPECT_THAT(output_, HasSubstr("no-such-program: not found in PATH"));
  std::ofstream(file("text")) << "not a program\n";
  EXPECT_EQ(run({"-np", "1", file("text")}), 2);
  EXPECT_THAT(output_, HasSubstr("not executable"));
  std::filesystem::current_path(scratch_.path());
  EXPECT_EQ(run({"-np", "1", "text"}), 2);
  EXPECT_THAT(output_, HasSubstr("text: not found in PATH (./text is no executable file: chmod"));
  std::filesystem::current_path("/");
}

TEST_F(LauncherTest, EndsWithTheCodeOfAWrongCommandLineForWhatCannotBeServed) {
  std::ofstream(file("text")) << "not a folder\n";
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"--http", "nonsense"},
                                                {"--http", "127.0.0.1:99999"},
                                                {"--bind", "nothost.invalid"},
                                                {"--output-dir", file("text")},
                                                {"--env", "ELASTIC_NO_SUCH=1"}}) {
    std::vector<std::string> command = {"-np", "1"};
    command.insert(command.end(), wrong.begin(), wrong.end());
    command.emplace_back("/bin/true");
    EXPECT_EQ(run(command), 2) << wrong[0] << " " << wrong[1] << ": " << output_;
  }
}

TEST_F(LauncherTest, GivesWorkersTheVariablesOfTheCommandLine) {
  run({"-np", "1", "--env", "FOO=bar", "/bin/sh", "-c", "echo FOO is $FOO"});
  EXPECT_THAT(output_, HasSubstr("FOO is bar"));
}

TEST_F(LauncherTest, RaisesTheLimitOfDescriptorsOfItsServerAndNotOfWorkers) {
  const std::vector<std::string> limited = {
      "/bin/sh", "-c", "ulimit -Sn 64; ulimit -Hn 200; exec \"$0\" \"$@\"", ELASTICRUN};
  std::vector<std::string> arguments = limited;
  for (const char* argument :
       {"-np", "1", "--max-np", "100", "--", "/bin/sh", "-c",
        "echo own limit: $(ulimit -Sn); grep 'open files' /proc/$PPID/limits"}) {
    arguments.emplace_back(argument);
  }
  Job job(arguments, file("log"), {"XDG_RUNTIME_DIR=" + scratch_.path().string()});
  EXPECT_TRUE(job.wait(kTimeLimit).has_value());
  EXPECT_THAT(job.output(), HasSubstr("own limit: 64"));
  EXPECT_THAT(job.output(), ::testing::ContainsRegex("Max open files +200 +200"));
  EXPECT_THAT(
      job.output(),
      HasSubstr("may have 200 descriptors and needs 332, for 100 workers, 3 for each and 32 "
                "more; raise the hard limit (ulimit -Hn)"));
}

TEST_F(LauncherTest, StartsNoJobForWhichItHasTooFewDescriptors) {
  std::vector<std::string> arguments = {
      "/bin/sh", "-c", "ulimit -n 64; exec \"$0\" \"$@\"", ELASTICRUN, "-np", "17", "/bin/true"};
  Job job(arguments, file("log"), {"XDG_RUNTIME_DIR=" + scratch_.path().string()});
  EXPECT_EQ(job.wait(kTimeLimit), 1);
  EXPECT_THAT(job.output(), HasSubstr("17 workers need 66 descriptors at least, and this process "
                                      "may have 64: raise the hard limit (ulimit -Hn)"));
  EXPECT_THAT(job.output(), Not(HasSubstr("and needs"))) << "two numbers for one limit";
}

TEST_F(LauncherTest, SaysWhatCannotBeExecuted) {
  std::ofstream(file("text")) << "not a program\n";
  ASSERT_EQ(::chmod(file("text").c_str(), 0700), 0);
  EXPECT_EQ(run({"-np", "1", file("text")}), 1);
  EXPECT_THAT(output_, HasSubstr("could not be started"));
  EXPECT_THAT(output_, HasSubstr("Exec format error"));
  EXPECT_EQ(run({"-np", "1", scratch_.path().string()}), 2);
  EXPECT_THAT(output_, HasSubstr(scratch_.path().string() + ": is a folder, and no program"));
}

TEST_F(LauncherTest, LeavesNoProcessBehindOnSigterm) {
  const auto program =
      start({"-np", "2", "/bin/sh", "-c", "sleep 1000 & echo $$ $! >> " + file("pids") + "; wait"});
  const auto pids = pids_in("pids", 4);
  ::kill(program->pid(), SIGTERM);
  EXPECT_EQ(program->wait(kTimeLimit), 1);
  EXPECT_THAT(program->output(), HasSubstr("stopped by SIGTERM"));
  expect_gone(pids);
}

/// As a scheduler warns.
TEST_F(LauncherTest, StopsOnSigusr1AndLeavesNoJobFile) {
  const auto program =
      start({"-np", "1", "/bin/sh", "-c", "echo $$ >> " + file("pids") + "; exec sleep 1000"});
  const auto pids = pids_in("pids", 1);
  ::kill(program->pid(), SIGUSR1);
  EXPECT_EQ(program->wait(kTimeLimit), 1);
  EXPECT_THAT(program->output(), HasSubstr("stopped by SIGUSR1"));
  expect_gone(pids);
  EXPECT_TRUE(std::filesystem::is_empty(jobs_folder()));
}

TEST_F(LauncherTest, KillsWorkersThatDoNotEndOnFurtherSignals) {
  const auto program =
      start({"-np", "1", "/bin/sh", "-c",
             "trap '' TERM; echo $$ >> " + file("pids") + "; while :; do sleep 1000; done"});
  const auto pids = pids_in("pids", 1);
  ::kill(program->pid(), SIGINT);
  ASSERT_TRUE(says(*program, "stopping the workers"));
  ::kill(program->pid(), SIGINT);
  EXPECT_TRUE(says(*program, "killing the workers")) << program->output();
  EXPECT_EQ(program->wait(kTimeLimit), 1);
  expect_gone(pids);
}

/// As under a pager, or a terminal that was halted.
TEST_F(LauncherTest, HearsSignalsWhileItsOutputIsNotRead) {
  const std::string fifo = file("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const UniqueFd unread(::open(fifo.c_str(), O_RDWR | O_CLOEXEC));
  const int room = ::fcntl(unread.get(), F_GETPIPE_SZ);
  Job job({"/bin/sh", "-c",
           "exec " + std::string(ELASTICRUN) + " -np 1 sh -c 'echo $$ >" + file("pids") +
               "; exec yes' >" + fifo},
          file("errors"), {"XDG_RUNTIME_DIR=" + scratch_.path().string()});
  const std::vector<pid_t> pids = pids_in("pids", 1);
  ASSERT_TRUE(eventually(kTimeLimit, [&] {
    int waiting = 0;
    return ::ioctl(unread.get(), FIONREAD, &waiting) == 0 && waiting >= room - PIPE_BUF;
  }));
  ::kill(job.pid(), SIGTERM);
  EXPECT_TRUE(says(job, "SIGTERM: stopping the workers")) << job.output();
  expect_gone(pids);
  EXPECT_FALSE(job.wait(std::chrono::milliseconds(0))) << "the rest of the output is to be read";
  ::kill(job.pid(), SIGTERM);
  EXPECT_NE(job.wait(kTimeLimit).value_or(0), 0);
}

TEST_F(LauncherTest, AFileAtItsLimitIsAsAFullDisk) {
  Job job({"/bin/sh", "-c",
           "ulimit -f 8; exec " + std::string(ELASTICRUN) + " -np 1 --output-dir " + file("out") +
               " sh -c 'yes | head -n 10000; exit 7'"},
          file("errors"), {"XDG_RUNTIME_DIR=" + scratch_.path().string()});
  EXPECT_EQ(job.wait(kTimeLimit), 1) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("worker-0.out: File too large"));
  EXPECT_THAT(job.output(), HasSubstr("worker 0 exited with code 7"));
}

TEST_F(LauncherTest, LeavesNoProcessBehindWhenItIsKilled) {
  const auto program =
      start({"-np", "2", "/bin/sh", "-c",
             "trap '' TERM HUP; sleep 1000 & echo $$ $! >> " + file("pids") + "; wait"});
  const auto pids = pids_in("pids", 4);
  ::kill(program->pid(), SIGKILL);
  EXPECT_EQ(program->wait(kTimeLimit), 128 + SIGKILL);
  expect_gone(pids);
}

TEST_F(LauncherTest, WhatAWorkerLeavesIsKilledWithIt) {
  EXPECT_EQ(run({"-np", "1", "/bin/sh", "-c", "sleep 1000 & echo $! >> " + file("pids")}), 1);
  expect_gone(pids_in("pids", 1));
}

TEST_F(LauncherTest, PreparesBeforeTheWorkers) {
  const std::string trace = file("trace");
  EXPECT_EQ(
      run({"-np", "2", "--prepare",
           "echo loads; sleep 1000 & echo $! >> " + file("pids") + "; echo prepared > " + trace,
           "/bin/sh", "-c", "echo $(cat " + trace + ") began; exit 1"}),
      1);
  EXPECT_THAT(output_, AllOf(HasSubstr("[prepare] loads"), HasSubstr("prepared began")));
  expect_gone(pids_in("pids", 1));
  EXPECT_EQ(run({"-np", "1", "--prepare", "exit 7", "/bin/sh", "-c", "echo began"}), 4);
  EXPECT_THAT(output_, AllOf(HasSubstr("--prepare: the command exited with code 7"),
                             Not(HasSubstr("began"))));
}

TEST_F(LauncherTest, ThePreparationEndsWithTheLauncher) {
  const std::string command =
      "trap '' TERM HUP; sleep 1000 & echo $$ $! >> " + file("pids") + "; wait";
  std::size_t processes = 0;
  for (const auto& [number, code] : {std::pair{SIGTERM, 1}, std::pair{SIGKILL, 128 + SIGKILL}}) {
    const auto program = start({"-np", "1", "--prepare", command, "/bin/true"});
    const auto pids = pids_in("pids", processes += 2);
    ::kill(program->pid(), number);
    EXPECT_EQ(program->wait(kTimeLimit), code) << program->output();
    expect_gone(pids);
  }
}

TEST_F(LauncherTest, ControlFindsTheOneRunningJob) {
  const auto program = start({"-np", "1", "--max-np", "2", "--job", "seen", "/bin/sh", "-c",
                              "echo $$ >> " + file("pids") + "; exec sleep 1000"});
  const auto first = pids_in("pids", 1);
  EXPECT_EQ(run({"ctl", "status"}), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("job seen: forming, 0 of 1 workers (min 1, max 2)"));
  EXPECT_EQ(run({"ctl", "--job", "seen", "status", "--json"}), 0);
  const auto json = nlohmann::json::parse(output_, nullptr, false);
  ASSERT_TRUE(json.is_object()) << output_;
  EXPECT_EQ(json["max_np"], 2);

  EXPECT_EQ(run({"ctl", "add", "1"}), 0) << output_;
  const auto both = pids_in("pids", 2);
  EXPECT_EQ(run({"ctl", "remove", "7"}), 1);
  EXPECT_EQ(run({"ctl", "--job", "other", "status"}), 1);
  EXPECT_EQ(run({"-np", "1", "--job", "seen", "/bin/true"}), 1);
  EXPECT_THAT(output_, HasSubstr("job seen is running already"));

  ::kill(program->pid(), SIGTERM);
  EXPECT_EQ(program->wait(kTimeLimit), 1);
  expect_gone(both);
  EXPECT_EQ(run({"ctl", "status"}), 1);
  EXPECT_THAT(output_, HasSubstr("no job of yours is running"));
}

TEST_F(LauncherTest, ControlFindsAJobOfAnEarlierReleaseThatCannotEncrypt) {
  const auto program = start({"-np", "1", "--job", "old", "/bin/sh", "-c",
                              "echo $$ >> " + file("pids") + "; exec sleep 1000"});
  pids_in("pids", 1);
  const std::string record = jobs_folder() + "/old.json";
  auto json = nlohmann::json::parse(read_file(record));
  ASSERT_EQ(json.erase("encrypt"), 1U);
  std::ofstream(record) << json.dump();
  EXPECT_EQ(run({"ctl", "status"}), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("job old: forming"));
}

TEST_F(LauncherTest, ControlIgnoresAndRemovesWhatADeadLauncherLeft) {
  {
    const auto program =
        start({"-np", "1", "/bin/sh", "-c", "echo $$ >> " + file("pids") + "; sleep 1000"});
    pids_in("pids", 1);
    ::kill(program->pid(), SIGKILL);
    ASSERT_TRUE(program->wait(kTimeLimit));
  }
  const std::string jobs = jobs_folder();
  EXPECT_FALSE(std::filesystem::is_empty(jobs));
  EXPECT_EQ(run({"ctl", "status"}), 1);
  EXPECT_TRUE(std::filesystem::is_empty(jobs));
}

TEST_F(LauncherTest, SaysWhichVariablesItDoesNotUse) {
  const Job job(with_elasticrun({"-np", "1", "/bin/true"}), file("log"),
                {"XDG_RUNTIME_DIR=" + scratch_.path().string(), "ELASTIC_JOB=mine",
                 "ELASTIC_SECRET_FILE=/no/file"});
  EXPECT_TRUE(says(job, "elasticrun: not used: ELASTIC_JOB, ELASTIC_SECRET_FILE; "));
}

TEST_F(LauncherTest, ControlTakesTheVariablesOfWorkersThatAreStartedByHand) {
  const std::vector<std::string> environment = {
      "XDG_RUNTIME_DIR=" + scratch_.path().string(), "ELASTIC_JOB=mine",
      "ELASTIC_RENDEZVOUS=127.0.0.1:1", "ELASTIC_SECRET_FILE=" + file("no-secret")};
  const Job job(with_elasticrun({"ctl", "status"}), file("log"), environment);
  EXPECT_TRUE(says(job, "cannot open the secret file " + file("no-secret")));
  const Job other(with_elasticrun({"ctl", "--job", "other", "status"}), file("log-other"),
                  environment);
  EXPECT_TRUE(says(other, "job other is not running on this machine; for one whose server"));
}

TEST_F(LauncherTest, ControlSaysHowAServerThatIsAwayComesBack) {
  const std::string secret = file("secret");
  std::ofstream(secret) << std::string(64, 'a');
  std::filesystem::permissions(secret, std::filesystem::perms::owner_read);
  EXPECT_EQ(run({"ctl", "--rendezvous", "127.0.0.1:1", "--job", "mine", "--secret-file", secret,
                 "status"}),
            1);
  EXPECT_THAT(output_, HasSubstr("Connection refused; a server that has ended can be started again "
                                 "with the same command"));
}

TEST_F(LauncherTest, ControlRefusesADeadlineThatIsNoNumber) {
  EXPECT_EQ(run({"ctl", "drain", "a", "--deadline", "nan"}), 2);
  EXPECT_THAT(output_, HasSubstr("--deadline: nan is no number of seconds"));
}

TEST_F(LauncherTest, ControlRefusesWrongUsage) {
  EXPECT_EQ(run({"ctl"}), 2);
  EXPECT_THAT(output_, HasSubstr("the command is missing; the commands are status, top, add"));
  EXPECT_EQ(run({"ctl", "stauts"}), 2);
  EXPECT_THAT(output_, HasSubstr("unknown command 'stauts'; did you mean status? (the commands are "
                                 "status, top, add, remove, drain, pardon, dump and stop)"));
  EXPECT_EQ(run({"ctl", "rm", "1"}), 2);
  EXPECT_THAT(output_, HasSubstr("unknown command 'rm'; did you mean remove?"));
  EXPECT_EQ(run({"ctl", "status", "--jsn"}), 2);
  EXPECT_THAT(output_, HasSubstr("unknown option --jsn; did you mean --json?"));
  EXPECT_EQ(run({"ctl", "add"}), 2);
  EXPECT_EQ(run({"ctl", "remove", "x"}), 2);
  EXPECT_EQ(run({"ctl", "--rendezvous", "127.0.0.1:1", "status"}), 2);
}

}  // namespace
}  // namespace elastic::testing
