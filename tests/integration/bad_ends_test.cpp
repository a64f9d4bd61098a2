// A mistake is not to become a job that succeeds: how elasticrun ends where workers fail at the
// start, are missing at the end, or do not use `run`. Real processes.
#include <csignal>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/ended.hpp"
#include "integration/launched_job.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr milliseconds kTimeLimit = milliseconds(30000) * kHangFactor;

Ended run_two(const std::string& mode, const std::vector<std::string>& options = {}) {
  std::vector<std::string> command{ELASTICRUN, "-np", "2"};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {BAD_WORKER, mode});
  return run(command);
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(BadEnds, StatesOfDifferentSizesFailTheJobOnEveryRank) {
  const Ended ended = run_two("layout");
  EXPECT_EQ(ended.status, 1) << ended.output;
  const auto named = [](const std::string& one, const std::string& other) {
    return "state entry 'weights': " + one + " has f32 x 1" + one.back() + ", " + other +
           " f32 x 1" + other.back();
  };
  // Which comes first is not given.
  const std::string why = ended.output.find(named("rank 0", "rank 1")) != std::string::npos
                              ? named("rank 0", "rank 1")
                              : named("rank 1", "rank 0");
  EXPECT_EQ(count(ended.output, "the job failed"), 1U) << ended.output;
  for (const char* by : {"[0]", "[1]", "elasticrun: the job failed: "}) {
    EXPECT_THAT(ended.output, ::testing::ContainsRegex("\\" + std::string(by) + ".*weights"))
        << ended.output;
  }
  EXPECT_THAT(last_line(ended.output),
              AllOf(HasSubstr(why), HasSubstr("; add the same entries, of the same "),
                    HasSubstr(" on all workers")));
  EXPECT_THAT(ended.output, Not(HasSubstr("starting it again")));
}

/// The server compares the layouts, too; the workers do not wait for it, and not go on without it.
TEST(BadEnds, NoWorkerTrainsWithEntriesInAnotherOrder) {
  for (int run = 0; run < 20; ++run) {
    const Ended ended = run_two("order");
    EXPECT_EQ(ended.status, 1) << ended.output;
    ASSERT_THAT(ended.output, Not(HasSubstr("trains"))) << "run " << run;
    ASSERT_THAT(last_line(ended.output), HasSubstr("the job failed: ")) << ended.output;
    ASSERT_THAT(last_line(ended.output), HasSubstr("'biases'")) << ended.output;
  }
}

TEST(BadEnds, OtherThreadsMayBeInCallsAsTheProcessExits) {
  for (int run = 0; run < 20; ++run) {
    const Ended ended = run_two("in_call", {"--max-restarts", "0"});
    ASSERT_THAT(ended.output, Not(HasSubstr("signal"))) << "run " << run;
    ASSERT_THAT(ended.output, Not(HasSubstr("ERROR: AddressSanitizer"))) << "run " << run;
  }
}

TEST(BadEnds, NamesInMessagesDoNotControlTheTerminal) {
  const Ended ended = run_two("escape");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_THAT(last_line(ended.output),
              AllOf(HasSubstr("elasticrun: the job failed: "), HasSubstr("we\\x1b[31m\\x0aights")));
}

TEST(BadEnds, AnObjectThatDiffersFailsTheJobAndIsNamed) {
  const Ended ended = run_two("object");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_THAT(
      last_line(ended.output),
      AllOf(HasSubstr("the state cannot be made the same on all members"), HasSubstr("object")));
  EXPECT_THAT(ended.output, HasSubstr("rank 1 differs from rank 0 in state entry 'object'"));
  EXPECT_THAT(ended.output, Not(HasSubstr("starting it again")));
}

TEST(BadEnds, AnObjectThatRefusesTheStateAtTheStartFailsTheJobOnEveryRank) {
  const Ended ended = run_two("load");
  EXPECT_EQ(ended.status, 1) << ended.output;
  const std::string why =
      "rank 1 could not take the job's state over: state entry 'tokenizer': no such tokenizer";
  EXPECT_EQ(last_line(ended.output), "elasticrun: the job failed: " + why);
  for (const char* rank : {"0", "1"}) {
    EXPECT_THAT(ended.output, HasSubstr("[" + std::string(rank) + "]   what():  elastic: " + why));
  }
  EXPECT_THAT(ended.output, Not(HasSubstr("trying again")));
  EXPECT_THAT(ended.output, Not(HasSubstr("starting it again")));
}

TEST(BadEnds, AJoinerWhoseObjectRefusesTheStateFailsAlone) {
  const Ended ended = run_two("joiner");
  EXPECT_EQ(ended.status, 0) << ended.output;
  const std::string why = "state entry 'tokenizer': no such tokenizer";
  EXPECT_THAT(ended.output, ::testing::ContainsRegex("\\[0\\].*goes on without .*rank 1 could "
                                                     "not take the job's state over: " +
                                                     why));
  EXPECT_THAT(
      ended.output,
      HasSubstr("[1]   what():  elastic: this worker could not take the job's state over: " + why));
  EXPECT_THAT(ended.output, HasSubstr("starting it again (restart 2 of 3)"));
  EXPECT_THAT(ended.output, Not(HasSubstr("the job failed")));
}

TEST(BadEnds, AnOptionThatIsWrongInCodeIsNotTriedAgain) {
  const Ended ended = run_two("option");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("Options::transport is '77'"));
  EXPECT_THAT(ended.output, Not(HasSubstr("starting it again")));
  EXPECT_THAT(last_line(ended.output), HasSubstr("before the job had begun"));
}

TEST(BadEnds, AVariableThatIsWrongIsToldOnceAndNothingStarts) {
  const Ended ended = run({ELASTICRUN, "-np", "4", BAD_WORKER, "exit"}, {"ELASTIC_TRANSPROT=shm"});
  EXPECT_EQ(ended.status, 2) << ended.output;
  EXPECT_EQ(count(ended.output, "ELASTIC_TRANSPROT"), 1U) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("did you mean ELASTIC_TRANSPORT?"));
}

TEST(BadEnds, AWorkerThatExitsInTheMiddleIsToldAndMissedAtTheEnd) {
  const Ended ended = run_two("exit");
  EXPECT_EQ(ended.status, 0) << ended.output;
  const std::string fate =
      "worker 1 left before the job's end: its process exited inside elastic::run, without "
      "elastic::shutdown";
  EXPECT_THAT(ended.output, HasSubstr("elasticrun: " + fate + "\n"));
  EXPECT_EQ(last_line(ended.output),
            "elasticrun: the job began with 2 workers and ended with 1: " + fate);
}

TEST(BadEnds, AJobWhoseWorkersAllExitInTheMiddleHasFailed) {
  const Ended ended = run_two("all_exit");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_THAT(last_line(ended.output), HasSubstr("the job failed: ")) << ended.output;
}

/// The program ignores the exception, and ends with code 0.
TEST(BadEnds, AWorkerThatAnExceptionMakesLeaveIsToldAndMissedAtTheEnd) {
  const Ended ended = run_two("throws");
  EXPECT_EQ(ended.status, 0) << ended.output;
  const std::string fate =
      "worker 1 left before the job's end: an exception left elastic::run: no such\\x0asample";
  EXPECT_THAT(ended.output, HasSubstr("elasticrun: " + fate + "\n"));
  EXPECT_EQ(last_line(ended.output),
            "elasticrun: the job began with 2 workers and ended with 1: " + fate);
}

TEST(BadEnds, AWorkerThatLeavesAfterAMismatchIsMissedAtTheEnd) {
  const Ended ended = run_two("differs");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(last_line(ended.output),
              AllOf(HasSubstr("began with 2 workers and ended with 1: worker 1 left before the "
                              "job's end: an exception left elastic::run: "),
                    HasSubstr("barrier")));
}

TEST(BadEnds, AJobThatExceptionsMakeEveryWorkerLeaveHasFailed) {
  const Ended ended = run_two("all");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_THAT(last_line(ended.output),
              AllOf(HasSubstr("the job failed: "), HasSubstr("no member could go on: "),
                    HasSubstr("an exception left elastic::run: no such\\x0asample of worker 0"),
                    HasSubstr("an exception left elastic::run: no such\\x0asample of worker 1")));
}

TEST(BadEnds, AJobThatUncaughtExceptionsEndShowsThemAll) {
  const Ended ended = run_two("uncaught", {"--max-restarts", "0"});
  EXPECT_EQ(ended.status, 1) << ended.output;
  for (const char* worker : {"0", "1"}) {
    EXPECT_THAT(ended.output, ::testing::ContainsRegex("elasticrun: worker " + std::string(worker) +
                                                       " died of signal 6 .*its last lines:"));
    EXPECT_THAT(ended.output, HasSubstr("    | sample of worker " + std::string(worker)));
  }
}

TEST(BadEnds, AWorkerThatExitsBeforeInitIsNamedWhileTheOthersWait) {
  LaunchedJob job;
  job.start({"-np", "2", BAD_WORKER, "stranger"});
  EXPECT_TRUE(eventually(kTimeLimit, [&] {
    return job.output().find(
               "worker 1 exited with code 0 before it had joined the job; does its "
               "program call elastic::init? The others wait for it for 60 s") != std::string::npos;
  })) << job.output();
  ASSERT_EQ(::kill(job.launcher().pid(), SIGTERM), 0);
  EXPECT_EQ(job.launcher().wait(kTimeLimit), 1) << job.output();
}

TEST(BadEnds, AWorkerThatReturnsFromRunWhileOthersTrainIsNamedAtTheEnd) {
  const Ended ended = run_two("early");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(last_line(ended.output),
            "elasticrun: the job began with 2 workers and ended with 1: worker 1 ended early: its "
            "elastic::run ended after 5 steps, and the others trained on");
}

TEST(BadEnds, TheMinimumHoldsForWorkersThatAnotherLeftEarly) {
  const Ended ended = run_two("early_without_run", {"--min-np", "2"});
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_THAT(last_line(ended.output),
              AllOf(HasSubstr("the job failed: only 1 workers are left, min_np is 2"),
                    HasSubstr("(rank 1) ended early: it called elastic::shutdown, and the others "
                              "went on with collectives")));
}

TEST(BadEnds, AJobThatEndsTogetherHasNoLastLine) {
  const Ended ended = run_two("trains", {"--min-np", "2"});
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(ended.output, "");
}

TEST(BadEnds, AProgramWithoutRunIsGivenNoReplacements) {
  const Ended ended = run_two("killed");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, Not(HasSubstr("starting it again (")));
  EXPECT_THAT(
      last_line(ended.output),
      AnyOf(HasSubstr("began with 2 workers and ended with 1: worker 1 died of signal 9 (Killed), "
                      "and no worker could join the job in its place"),
            HasSubstr("died of signal 9 (Killed), and the job was done before it could be "
                      "replaced")));
}

TEST(BadEnds, AProgramWithoutRunIsStoppedWithoutAnException) {
  LaunchedJob job;
  job.start({"-np", "2", "--max-np", "3", BAD_WORKER, "endless", job.folder().string()});
  for (const char* rank : {"0", "1"}) {
    ASSERT_TRUE(eventually(kTimeLimit, [&] {
      return std::filesystem::exists(job.folder() / ("step." + std::string(rank)));
    })) << job.output();
  }
  std::string told;
  EXPECT_FALSE(job.control({"add", "1"}, &told));
  EXPECT_THAT(told, HasSubstr("no member is in elastic::run"));
  EXPECT_TRUE(job.control({"stop"}, &told));
  EXPECT_EQ(told, "the job stops now: no worker is in elastic::run\n");
  EXPECT_EQ(job.launcher().wait(kTimeLimit), 1) << job.output();
  EXPECT_THAT(job.output(), AllOf(HasSubstr("the job was stopped"), Not(HasSubstr("terminate")),
                                  Not(HasSubstr("died of signal"))));
}

TEST(BadEnds, AWorkerThatIsRemovedWithoutRunIsNotReplaced) {
  LaunchedJob job;
  job.start({"-np", "2", BAD_WORKER, "endless", job.folder().string()});
  ASSERT_TRUE(eventually(kTimeLimit, [&] {
    return std::filesystem::exists(job.folder() / "step.1");
  })) << job.output();
  EXPECT_TRUE(job.control({"remove", "1"}));
  EXPECT_TRUE(eventually(kTimeLimit, [&] {
    return job.output().find("worker 1 was removed on request, and died of signal 6") !=
           std::string::npos;
  })) << job.output();
  EXPECT_TRUE(job.control({"stop"}));
  EXPECT_EQ(job.launcher().wait(kTimeLimit), 1) << job.output();
  EXPECT_THAT(job.output(), Not(HasSubstr("starting it again")));
}

TEST(WorkerOutput, OfAKilledWorkerIsCompleteWithoutAFlush) {
  const Ended ended = run_two("print", {"--max-restarts", "0"});
  EXPECT_EQ(ended.status, 1);
  for (const std::string slot : {"[0] ", "[1] "}) {
    // The bytes are passed on unchanged.
    EXPECT_EQ(count(ended.output, slot + "\x1b[1mtab\tand\rreturn\x01\xff\n"), 1U) << slot;
    for (const int line : {0, 1, 9999, 19998, 19999}) {
      const std::string whole = slot + "line " + std::to_string(line) + " of a worker\n";
      EXPECT_EQ(count(ended.output, whole), 1U) << whole;
    }
  }
}

TEST(WorkerOutput, GoesThroughAPipeWhereAsked) {
  const Ended ended =
      run({ELASTICRUN, "-np", "1", "--no-pty", "/bin/sh", "-c", "test -t 1 || echo a pipe"});
  EXPECT_THAT(ended.output, HasSubstr("[0] a pipe\n"));
  const Ended usual = run({ELASTICRUN, "-np", "1", "/bin/sh", "-c",
                           "test -t 1 && echo terminal; test -t 2 || echo stderr is a pipe"});
  EXPECT_THAT(usual.output,
              AllOf(HasSubstr("[0] terminal\n"), HasSubstr("[0] stderr is a pipe\n")));
}

/// A job that is done, with a line on stdout of its one worker. `redirect` is of elasticrun.
Ended run_in_shell(const std::string& options, const std::string& redirect) {
  return run({"/bin/sh", "-c",
              "exec " + std::string(ELASTICRUN) + " -np 1 " + options +
                  " /bin/sh -c 'echo hello; " + "echo hello; exec " + BAD_WORKER + " trains' " +
                  redirect});
}

TEST(WorkerOutput, ThatCannotBeWrittenIsToldOnceAndInTheExitCode) {
  const Ended full = run_in_shell("", "> /dev/full");
  EXPECT_EQ(full.status, 1) << full.output;
  EXPECT_EQ(count(full.output, "elasticrun: cannot write workers' output to stdout: No space left"),
            1U)
      << full.output;
  const Ended written = run_in_shell("", "> /dev/null");
  EXPECT_EQ(written.status, 0) << written.output;
}

TEST(WorkerOutput, ThatAFileDoesNotTakeIsToldWithItsName) {
  const ScratchFolder scratch;
  std::filesystem::create_symlink("/dev/full", scratch.path() / "worker-0.out");
  const Ended full = run_in_shell("--output-dir " + scratch.path().string(), "");
  EXPECT_EQ(full.status, 1) << full.output;
  EXPECT_EQ(count(full.output, "worker-0.out: No space left"), 1U) << full.output;
}

TEST(WorkerOutput, IntoAClosedPipeDoesNotEndTheJob) {
  const ScratchFolder scratch;
  const std::string closed = (scratch.path() / "closed").string();
  const Ended piped =
      run({"/bin/sh", "-c",
           "{ " + std::string(ELASTICRUN) + " -np 1 /bin/sh -c 'until [ -e " + closed +
               " ]; do sleep 0.01; done; echo hello; exec " + BAD_WORKER +
               " trains'; echo code $? >&2; } | { exec 0<&-; : > " + closed + "; }"});
  EXPECT_THAT(piped.output, HasSubstr("cannot write workers' output to stdout: Broken pipe"));
  EXPECT_THAT(piped.output, HasSubstr("code 1\n"));
  EXPECT_THAT(piped.output, Not(HasSubstr("died of signal")));
}

TEST(WorkerOutput, IntoAClosedStreamIsToldAndDoesNotGoElsewhere) {
  const Ended closed = run_in_shell("", ">&-");
  EXPECT_EQ(closed.status, 1) << closed.output;
  EXPECT_EQ(count(closed.output, "cannot write workers' output to stdout: Bad file descriptor"), 1U)
      << closed.output;
}

TEST(Elasticrun, SaysThatItsOwnOutputCannotBeWritten) {
  const Ended full =
      run({"/bin/sh", "-c", "exec " + std::string(ELASTICRUN) + " --version > /dev/full"});
  EXPECT_EQ(full.status, 1);
  EXPECT_THAT(full.output, HasSubstr("elasticrun: cannot write to stdout: No space left"));
}

}  // namespace
}  // namespace elastic::testing
