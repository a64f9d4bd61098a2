// The exit code of a launcher, and what it says became of the workers.
#include <csignal>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/launcher/exit_code.hpp"
#include "supervision_world.hpp"

namespace elastic::launcher {
namespace {

TEST(Latecomer, SaysHowTheJobHadEndedAndEndsWithItsCode) {
  EXPECT_FALSE(end_of_latecomer({JobPhase::kForming, ""}, "a:1", true));
  EXPECT_FALSE(end_of_latecomer({JobPhase::kRunning, ""}, "a:1", true));
  JobStateChanged over{JobPhase::kDone, ""};
  const auto done = end_of_latecomer(over, "a:1", false);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->exit_code, 0);
  EXPECT_EQ(done->reason,
            "the job at a:1 was done before this elasticrun joined it, so no worker was started "
            "here");
  over.stopped = true;
  EXPECT_THAT(end_of_latecomer(over, "a:1", true)->reason,
              testing::AllOf(testing::HasSubstr(" was stopped before "),
                             testing::EndsWith("start a new server for another training")));
  const auto failed = end_of_latecomer({JobPhase::kFailed, "a stall"}, "a:1", true);
  EXPECT_EQ(failed->exit_code, 1);
  EXPECT_THAT(failed->reason, testing::HasSubstr("it failed: a stall"));
}

TEST(Supervision, SaysWhyAWorkerThatCouldNotGoOnFailed) {
  for (const int restarts : {0, 1}) {
    World world({.np = 2, .max_np = 2, .max_restarts = restarts});
    world.happens(WorkerExited{0, kSuccess, in(JobPhase::kDone)});
    world.happens(WorkerExited{
        1,
        kCode3,
        {JobPhase::kDone, false, WorkerReport::Left::kUnable, false, "an exception: no sample"}});
    ASSERT_TRUE(world.finished);
    EXPECT_THAT(world.finished->reason,
                testing::EndsWith(
                    std::string("worker 1 exited with code 3: an exception: no sample, and ") +
                    (restarts == 0 ? "no restarts were left"
                                   : "the job was done before it could be replaced")));
  }
}

TEST(Supervision, SaysWhatBecameOfEveryWorkerThatIsMissing) {
  World world({.np = 4, .max_np = 4, .max_restarts = 1});
  world.happens(JobStateChanged{JobPhase::kRunning, "", true});
  world.happens(
      WorkerExited{0, kSuccess, {JobPhase::kRunning, true, WorkerReport::Left::kRemoved, false}});
  world.happens(
      WorkerExited{1, kSuccess, {JobPhase::kRunning, true, WorkerReport::Left::kFinished, false}});
  world.happens(WorkerExited{2, kSuccess, in(JobPhase::kRunning)});
  ASSERT_EQ(world.last.size(), 1U);
  EXPECT_EQ(std::get<Say>(world.last[0]).text,
            "worker 2 exited with code 0 in the middle of the job, without elastic::shutdown");
  world.happens(WorkerExited{3, kSuccess, in(JobPhase::kDone)});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 0);
  EXPECT_EQ(
      world.finished->reason,
      "the job began with 4 workers and ended with 2: worker 0 was removed on request; worker "
      "2 exited with code 0 in the middle of the job, without elastic::shutdown");
}

/// Other launchers count their own.
TEST(Supervision, WithOtherLaunchersItSaysThatItCountsTheWorkersOfThisHost) {
  World world({.np = 2, .max_np = 2, .max_restarts = 0});
  WorkerReport report = in(JobPhase::kRunning);
  report.several_launchers = true;
  world.happens(WorkerExited{1, kKilled, report});
  world.happens(WorkerExited{0, kSuccess, in(JobPhase::kDone)});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->reason,
            "on this host the job began with 2 workers and ended with 1: worker 1 died of signal 9 "
            "(Killed), and no restarts were left");
}

TEST(Supervision, AWorkerThatLeftInTheMiddleIsToldAlsoWhereTheJobHasEndedSince) {
  World world(two_workers());
  world.happens(
      WorkerExited{1, kSuccess, {JobPhase::kDone, false, WorkerReport::Left::kLost, false}});
  world.happens(WorkerExited{0, kSuccess, in(JobPhase::kDone)});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(
      world.finished->reason,
      "the job began with 2 workers and ended with 1: worker 1 exited with code 0 in the middle "
      "of the job, without elastic::shutdown");
}

/// That it ended early is known only after it is gone.
TEST(Supervision, NamesAWorkerThatTheOthersTrainedOnWithout) {
  World world(two_workers());
  world.happens(JobStateChanged{JobPhase::kRunning, "", true});
  world.happens(
      WorkerExited{1, kSuccess, {JobPhase::kRunning, false, WorkerReport::Left::kFinished, false}});
  WorkerReport last = in(JobPhase::kDone);
  last.ended_early[1] = "its elastic::run ended after 5 steps, and the others trained on";
  world.happens(WorkerExited{0, kSuccess, last});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 0);
  EXPECT_EQ(world.finished->reason,
            "the job began with 2 workers and ended with 1: worker 1 ended early: its elastic::run "
            "ended after 5 steps, and the others trained on");
}

/// The report is about the worker before it: the replacement has never registered.
TEST(Supervision, AReplacementThatComesWhenTheJobIsDoneIsNotBlamed) {
  World world(two_workers());
  world.happens(WorkerExited{1, kKilled, in(JobPhase::kRunning)});
  world.happens(WorkerExited{0, kSuccess, in(JobPhase::kDone)});
  world.happens(
      WorkerExited{1, kSuccess, {JobPhase::kDone, false, WorkerReport::Left::kLost, false}});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->reason,
            "the job began with 2 workers and ended with 1: worker 1 died of signal 9 (Killed)");
}

TEST(Supervision, AReplacementThatNeverJoinedDoesNotHideTheDeath) {
  World world(two_workers());
  world.happens(WorkerExited{1, kKilled, in(JobPhase::kRunning)});
  world.happens(WorkerExited{0, kSuccess, in(JobPhase::kDone)});
  world.happens(
      WorkerExited{1, kSuccess, {JobPhase::kDone, false, WorkerReport::Left::kNot, false}});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->reason,
            "the job began with 2 workers and ended with 1: worker 1 died of signal 9 (Killed)");
}

TEST(Supervision, AWorkerThatWasGivenUpAndDoesNotExitIsMissing) {
  World world({.np = 2, .max_np = 2, .exit = Milliseconds(1500)});
  world.happens(WorkerExited{0, kSuccess, in(JobPhase::kDone)});
  world.passes(Milliseconds(1500));
  world.happens(
      WorkerExited{1, kKilled, {JobPhase::kDone, false, WorkerReport::Left::kLost, false}});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 0);
  EXPECT_EQ(world.finished->reason,
            "the job began with 2 workers and ended with 1: worker 1 did not exit within 1.5 s "
            "after the job was done");
}

TEST(Supervision, AnEvictedWorkerThatEndsWellIsNotSaidToLackShutdown) {
  World world(two_workers());
  world.happens(WorkerExited{
      1, kSuccess, {JobPhase::kRunning, true, WorkerReport::Left::kEvicted, false, "silent"}});
  EXPECT_EQ(std::get<Say>(world.last.back()).text,
            "worker 1 was given up by the job: silent; it exited with code 0");
  world.happens(WorkerExited{0, kSuccess, in(JobPhase::kDone)});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->reason,
            "the job began with 2 workers and ended with 1: worker 1 was given up by the job: "
            "silent");
}

TEST(Supervision, AWorkerThatLeftEarlyAndFailsOnceTheJobIsDoneIsMissing) {
  World world(two_workers());
  world.happens(WorkerExited{0, kSuccess, in(JobPhase::kDone)});
  world.happens(
      WorkerExited{1, kKilled, {JobPhase::kDone, false, WorkerReport::Left::kLost, false}});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 0);
  EXPECT_THAT(world.finished->reason,
              testing::EndsWith("worker 1 died of signal 9 (Killed), and the job was done before "
                                "it could be replaced"));
}

TEST(Supervision, AJobWhoseWorkersAllLeftWithAnErrorIsNotDone) {
  World world({.np = 1, .max_np = 1});
  world.happens(WorkerExited{0, kCode3, {JobPhase::kDone, false, WorkerReport::Left::kLost, true}});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 1);
  EXPECT_EQ(world.finished->reason, "no worker came to the job's end: worker 0 exited with code 3");
}

TEST(Supervision, FailsWithTheLastOutputWhenEveryWorkerDied) {
  World world({.np = 1, .max_np = 1, .max_restarts = 2});
  for (int death = 0; death < 3; ++death) {
    EXPECT_FALSE(world.finished);
    world.happens(WorkerExited{0, kCode3, in(JobPhase::kRunning)});
  }
  EXPECT_EQ(world.started.size(), 3U);
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 1);
  EXPECT_EQ(world.finished->reason,
            "worker 0 exited with code 3, no worker is left and 2 of 2 restarts are used");
  EXPECT_TRUE(world.shows_output_of(0));
}

/// The code tells the launcher that started the agent that these did not fail after the job's end,
/// whichever of the two ends it hears of first.
TEST(Supervision, AnAgentWhoseWorkersDiedWhileTheJobRanSaysSoByItsCode) {
  World world({.np = 1, .max_np = 1, .max_restarts = 0, .joined = true});
  world.happens(WorkerExited{0, kKilled, in(JobPhase::kRunning)});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, exit_code::kWorkersLost);

  World late({.np = 1, .max_np = 1, .max_restarts = 0, .joined = true});
  late.happens(WorkerExited{0, kKilled, {JobPhase::kDone, false, WorkerReport::Left::kLost, true}});
  ASSERT_TRUE(late.finished);
  EXPECT_EQ(late.finished->exit_code, exit_code::kWorkersLost);

  World after({.np = 1, .max_np = 1, .max_restarts = 0, .joined = true});
  after.happens(WorkerExited{0, kCode3, in(JobPhase::kDone)});
  ASSERT_TRUE(after.finished);
  EXPECT_EQ(after.finished->exit_code, exit_code::kFailed);
}

TEST(Supervision, AnAgentWhoseReplacementsCameTooLateHasNotFailed) {
  World world({.np = 1, .max_np = 1, .max_restarts = 1, .joined = true});
  world.happens(JobStateChanged{JobPhase::kRunning, "", true, false});
  world.happens(WorkerExited{0, kKilled, in(JobPhase::kRunning)});
  EXPECT_EQ(world.started.size(), 2U);
  const WorkerReport never_a_member{JobPhase::kDone, false, WorkerReport::Left::kNot, false};
  world.happens(WorkerExited{0, kSuccess, never_a_member});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, exit_code::kDone);
  EXPECT_EQ(world.finished->reason, "");
}

TEST(Supervision, DoesNotReplaceAWorkerThatDiesAfterTheEndAndSaysSo) {
  World world(two_workers());
  world.happens(WorkerExited{0, kCode3, in(JobPhase::kDone)});
  EXPECT_EQ(world.started.size(), 2U);
  world.happens(WorkerExited{1, kSuccess, in(JobPhase::kDone)});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 1);
  EXPECT_EQ(world.finished->reason, "worker 0 exited with code 3 after the job was done");
}

TEST(Supervision, NamesTheFirstFailureAndNotOneThatWasReplaced) {
  World world({.np = 3, .max_np = 3, .max_restarts = 1});
  world.happens(WorkerExited{0, kKilled, in(JobPhase::kRunning)});
  world.happens(WorkerExited{0, kSuccess, in(JobPhase::kRunning)});
  world.happens(WorkerExited{2, kCode3, in(JobPhase::kRunning)});
  world.happens(WorkerExited{1, kKilled, in(JobPhase::kRunning)});
  ASSERT_TRUE(world.finished);
  EXPECT_THAT(world.finished->reason, testing::StartsWith("worker 2 exited with code 3"));
  EXPECT_FALSE(world.shows_output_of(0));
  EXPECT_TRUE(world.shows_output_of(1));
}

TEST(Supervision, NamesAWorkerThatExitsBeforeItHasJoined) {
  World world({.np = 2, .min_np = 2, .max_np = 2});
  WorkerReport stranger = in(JobPhase::kForming);
  stranger.member = false;
  world.happens(WorkerExited{1, kSuccess, stranger});
  ASSERT_EQ(world.last.size(), 1U);
  EXPECT_EQ(std::get<Say>(world.last[0]).text,
            "worker 1 exited with code 0 before it had joined the job; does its program call "
            "elastic::init? The others wait for it for 60 s, and then begin without it if --min-np "
            "allows that");
  world.happens(JobStateChanged{JobPhase::kFailed, "only 1 of 2 workers came"});
  world.happens(WorkerExited{0, kCode3, in(JobPhase::kFailed)});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 1);
  EXPECT_EQ(world.finished->reason,
            "the job failed: only 1 of 2 workers came; worker 1 exited with code 0 before it had "
            "joined the job");
}

TEST(Supervision, MissesAWorkerThatExitedBeforeItHadJoined) {
  World world(two_workers());
  WorkerReport stranger = in(JobPhase::kForming);
  stranger.member = false;
  world.happens(WorkerExited{1, kSuccess, stranger});
  world.happens(JobStateChanged{JobPhase::kRunning, ""});
  world.happens(WorkerExited{0, kSuccess, in(JobPhase::kDone)});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 0);
  EXPECT_EQ(world.finished->reason,
            "the job began with 2 workers and ended with 1: worker 1 exited with code 0 before it "
            "had joined the job");
}

/// The job fails for the death of all; the exception of each is in its last lines.
TEST(Supervision, ShowsTheLastLinesOfAllWorkersWhoseDeathsFailedTheJob) {
  World world(two_workers());
  world.happens(JobStateChanged{JobPhase::kFailed, "all members are gone"});
  for (const int slot : {0, 1}) {
    WorkerReport lost = in(JobPhase::kFailed);
    lost.left = WorkerReport::Left::kLost;
    world.happens(WorkerExited{slot, {.code = 0, .signal = SIGABRT}, lost});
  }
  ASSERT_TRUE(world.finished);
  EXPECT_TRUE(world.shows_output_of(0));
  EXPECT_TRUE(world.shows_output_of(1));
  EXPECT_EQ(world.finished->reason, "the job failed: all members are gone");
}

/// Its code says only that it was told.
TEST(Supervision, AReplacementThatIsToldOfTheFailureIsNotItsCause) {
  World world(two_workers());
  WorkerReport lost = in(JobPhase::kRunning);
  lost.left = WorkerReport::Left::kLost;
  lost.joinable = true;
  world.happens(JobStateChanged{JobPhase::kRunning, "", true});
  world.happens(WorkerExited{0, kKilled, lost});
  ASSERT_EQ(world.started.size(), 3U);
  world.happens(JobStateChanged{JobPhase::kFailed, "all members are gone"});
  lost.phase = JobPhase::kFailed;
  world.happens(WorkerExited{1, kKilled, lost});
  world.happens(WorkerExited{0, kCode3, lost});
  ASSERT_TRUE(world.finished);
  EXPECT_TRUE(world.shows_output_of(1));
  EXPECT_FALSE(world.shows_output_of(0));
}

TEST(Supervision, NamesAProgramThatNeverJoins) {
  World world(two_workers());
  world.happens(WorkerExited{0, kSuccess, in(JobPhase::kForming)});
  world.happens(WorkerExited{1, kSuccess, in(JobPhase::kForming)});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 1);
  EXPECT_THAT(world.finished->reason, testing::HasSubstr("never called elastic::init"));
}

/// Its other workers are ended, which is no departure.
TEST(SupervisionOutcome, AJoinedLauncherWithAWorkerThatFailsAtTheStartHasFailed) {
  World world({.np = 3, .max_np = 3, .joined = true});
  world.happens(WorkerExited{0, kCode3, in(JobPhase::kForming)});
  for (const int slot : {1, 2}) world.happens(WorkerExited{slot, kKilled, in(JobPhase::kForming)});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 5);
  EXPECT_TRUE(world.shows_output_of(0));
}

TEST(SupervisionOutcome, AJobThatFailedBeginsAnewAlthoughAWorkerHung) {
  World world({.np = 2, .max_np = 2, .max_restarts = 0});
  world.happens(JobStateChanged{JobPhase::kRunning, "", true, false});
  world.happens(JobStateChanged{JobPhase::kFailed, "a call has stalled", false, false});
  world.happens(WorkerExited{0, kCode3, in(JobPhase::kFailed)});
  world.passes(Milliseconds(5000));
  EXPECT_THAT(world.signals, testing::ElementsAre(SIGTERM));
  world.happens(WorkerExited{1, kKilled, in(JobPhase::kFailed)});
  ASSERT_TRUE(world.finished);
  EXPECT_TRUE(world.finished->may_begin_anew);
}

/// A step boundary comes within the least time, and the state is saved there.
TEST(SupervisionOutcome, ANoticeWhoseTimeIsPastLeavesTimeForAStepBoundary) {
  for (const bool joined : {false, true}) {
    World world({.np = 1, .max_np = 1, .joined = joined});
    world.happens(JobStateChanged{JobPhase::kRunning, "", true, false});
    world.happens(NoticeCame{"EC2 will stop this machine", Milliseconds(0), Milliseconds(90000)});
    ASSERT_EQ(world.last.size(), 3U) << joined;
    EXPECT_THAT(std::get<Say>(world.last[0]).text,
                testing::StartsWith("EC2 will stop this machine in 0 s, and its workers have 5 s "
                                    "all the same: "));
    if (joined) {
      EXPECT_EQ(std::get<RequestDrain>(world.last[1]).deadline, Milliseconds(5000));
    }
    EXPECT_THAT(std::get<Say>(world.last[2]).text,
                testing::StartsWith("the time of this notice was 90 s ago: the clock"));
    world.passes(Milliseconds(4999));
    EXPECT_TRUE(world.signals.empty()) << joined;
    world.passes(Milliseconds(1));
    EXPECT_THAT(world.signals, testing::ElementsAre(SIGTERM)) << joined;
  }
}

/// It has no time of day: the clocks do not matter.
TEST(SupervisionOutcome, ANoticeOfNoTimeLeavesTheSame) {
  World world({.np = 1, .max_np = 1});
  world.happens(JobStateChanged{JobPhase::kRunning, "", true, false});
  world.happens(NoticeCame{"the file f says that this machine is to end", Milliseconds(0)});
  EXPECT_EQ(world.last.size(), 2U);
  EXPECT_EQ(world.stops, 1);
  EXPECT_EQ(world.supervision.next_tick(), world.now + Milliseconds(5000));
}

/// The machine is to end: no worker is started there again, and the job does not begin again.
TEST(SupervisionOutcome, WorkersThatANoticesTimeEndsHaveNotFailed) {
  for (const bool joined : {false, true}) {
    World world({.np = 2, .max_np = 2, .max_restarts = 3, .joined = joined});
    world.happens(JobStateChanged{JobPhase::kRunning, "", true, false});
    world.happens(NoticeCame{"EC2 ends this machine", Milliseconds(120000)});
    EXPECT_EQ(world.stops, joined ? 0 : 1);
    EXPECT_EQ(world.drains, joined ? 1 : 0);
    world.passes(Milliseconds(120000));
    EXPECT_THAT(world.signals, testing::ElementsAre(SIGTERM));
    for (const int slot : {0, 1})
      world.happens(WorkerExited{slot, kKilled, in(JobPhase::kRunning)});
    EXPECT_EQ(world.started.size(), 2U) << joined;
    ASSERT_TRUE(world.finished) << joined;
    EXPECT_EQ(world.finished->exit_code, joined ? 75 : 1);
    EXPECT_FALSE(world.finished->may_begin_anew);
    EXPECT_THAT(world.finished->reason, testing::HasSubstr("stopped where they were"));
  }
}

}  // namespace
}  // namespace elastic::launcher
