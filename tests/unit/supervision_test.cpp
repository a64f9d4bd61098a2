#include "rendezvous/launcher/supervision.hpp"

#include <csignal>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/launcher/other_hosts.hpp"
#include "supervision_world.hpp"

namespace elastic::launcher {
namespace {

TEST(Supervision, StartsEverySlotOnce) {
  const World world({.np = 3, .max_np = 3});
  ASSERT_EQ(world.started.size(), 3U);
  for (int slot = 0; slot < 3; ++slot) {
    EXPECT_EQ(world.started[static_cast<std::size_t>(slot)].slot, slot);
    EXPECT_EQ(world.started[static_cast<std::size_t>(slot)].attempt, 0);
  }
}

TEST(Supervision, SucceedsWhenTheJobIsDoneAndAllEnded) {
  World world(two_workers());
  world.happens(JobStateChanged{JobPhase::kRunning, ""});
  world.happens(WorkerExited{0, kSuccess, in(JobPhase::kDone)});
  EXPECT_FALSE(world.finished);
  world.happens(WorkerExited{1, kSuccess, in(JobPhase::kDone)});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 0);
  EXPECT_EQ(world.finished->reason, "");
}

TEST(Supervision, ReplacesADeadWorkerInItsSlot) {
  World world(two_workers());
  world.happens(WorkerExited{1, kKilled, in(JobPhase::kRunning)});
  ASSERT_EQ(world.started.size(), 3U);
  EXPECT_EQ(world.started[2].slot, 1);
  EXPECT_EQ(world.started[2].attempt, 1);
}

TEST(Supervision, GoesOnWithoutAWorkerWhenNoRestartsAreLeft) {
  World world(two_workers());
  world.happens(WorkerExited{1, kKilled, in(JobPhase::kRunning)});
  world.happens(WorkerExited{1, kKilled, in(JobPhase::kRunning)});
  EXPECT_EQ(world.started.size(), 3U);
  EXPECT_FALSE(world.finished);
  world.happens(WorkerExited{0, kSuccess, in(JobPhase::kDone)});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 0) << "the others finished the job";
  EXPECT_EQ(
      world.finished->reason,
      "the job began with 2 workers and ended with 1: worker 1 died of signal 9 (Killed), and "
      "no restarts were left");
}

TEST(Supervision, StartsNoReplacementUntilOneCanJoin) {
  World world(two_workers());
  world.happens(JobStateChanged{JobPhase::kRunning, ""});
  world.happens(WorkerExited{1, kKilled, kNotJoinable});
  EXPECT_EQ(world.started.size(), 2U);
  world.happens(JobStateChanged{JobPhase::kRunning, "", true});
  ASSERT_EQ(world.started.size(), 3U);
  EXPECT_EQ(world.started[2].slot, 1);
  world.happens(JobStateChanged{JobPhase::kRunning, "", true});
  EXPECT_EQ(world.started.size(), 3U);
}

TEST(Supervision, AWorkerThatFailsBeforeTheJobHasBegunFailsIt) {
  World world({.np = 3, .max_np = 3});
  world.happens(WorkerExited{1, kCode3, in(JobPhase::kForming)});
  EXPECT_EQ(world.started.size(), 3U);
  EXPECT_EQ(world.signals, std::vector<int>{SIGTERM});
  world.happens(WorkerExited{0, {.code = 0, .signal = SIGTERM}, in(JobPhase::kForming)});
  world.happens(WorkerExited{2, {.code = 0, .signal = SIGTERM}, in(JobPhase::kForming)});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 1);
  EXPECT_EQ(world.finished->reason, "worker 1 exited with code 3 before the job had begun");
  EXPECT_TRUE(world.shows_output_of(1));
  EXPECT_FALSE(world.shows_output_of(0));
}

TEST(Supervision, AWorkerThatIsKilledBeforeTheJobHasBegunIsReplaced) {
  World world(two_workers());
  world.happens(WorkerExited{1, kKilled, in(JobPhase::kForming)});
  EXPECT_EQ(world.started.size(), 3U);
  EXPECT_TRUE(world.signals.empty());
}

TEST(Supervision, KillsAWorkerThatIsSilentAndReplacesItLikeAnyOther) {
  World world(two_workers());
  world.happens(JobStateChanged{JobPhase::kRunning, "", true});
  world.happens(WorkerSilent{1, "77", "no heartbeat for 500 ms"});
  EXPECT_EQ(world.killed, std::vector<int>{1});
  EXPECT_TRUE(world.signals.empty()) << "worker 0 goes on";
  ASSERT_FALSE(world.last.empty());
  EXPECT_THAT(std::get<Say>(world.last[0]).text,
              ::testing::StartsWith("killing worker 1 (process 77): the job has given it up: no "
                                    "heartbeat for 500 ms; under the backend nccl"));
  EXPECT_EQ(world.started.size(), 2U) << "not before it has ended";
  WorkerReport report = in(JobPhase::kRunning);
  report.left = WorkerReport::Left::kEvicted;
  world.happens(WorkerExited{1, kKilled, report});
  ASSERT_EQ(world.started.size(), 3U);
  EXPECT_EQ(world.started[2].slot, 1);
  world.happens(JobStateChanged{JobPhase::kRunning, "", true});
  world.happens(WorkerSilent{5, "78", ""});
  EXPECT_EQ(world.killed, std::vector<int>{1}) << "no worker was started there";
}

TEST(Supervision, EndsWorkersThatDoNotHearThatTheJobIsStopped) {
  World world({.np = 2, .max_np = 2, .kill_grace = Milliseconds(100)});
  world.happens(JobStateChanged{JobPhase::kRunning, ""});
  world.happens(JobStateChanged{JobPhase::kDone, "stopped", false, true});
  EXPECT_EQ(world.signals, std::vector<int>{SIGTERM});
  const ExitStatus terminated{.code = 0, .signal = SIGTERM};
  world.happens(WorkerExited{0, terminated, in(JobPhase::kDone)});
  world.passes(Milliseconds(100));
  EXPECT_EQ(world.signals, (std::vector<int>{SIGTERM, SIGKILL}));
  world.happens(WorkerExited{1, kKilled, in(JobPhase::kDone)});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 1) << "as after a signal";
  EXPECT_EQ(world.finished->reason, "the job was stopped, and its workers where they were");
}

std::string named_running(const World& world) {
  for (const auto& action : world.last) {
    if (const auto* names = std::get_if<NameRunning>(&action)) return names->before + names->after;
  }
  return {};
}

TEST(Supervision, NamesAndEndsAWorkerThatDoesNotExitOnceTheJobIsDone) {
  World world({.np = 2,
               .max_np = 2,
               .exit = Milliseconds(1000),
               .exit_notice = Milliseconds(400),
               .kill_grace = Milliseconds(100)});
  world.happens(JobStateChanged{JobPhase::kRunning, ""});
  world.happens(WorkerExited{0, kSuccess, in(JobPhase::kDone)});
  world.passes(Milliseconds(400));
  EXPECT_THAT(named_running(world), testing::StartsWith("the job is done; waiting for "));
  EXPECT_THAT(named_running(world), testing::HasSubstr(" to exit, for at most "));
  EXPECT_TRUE(world.signals.empty());
  world.passes(Milliseconds(600));
  EXPECT_THAT(named_running(world), testing::HasSubstr("did not exit within 1 s"));
  EXPECT_EQ(world.signals, std::vector<int>{SIGTERM});
  world.passes(Milliseconds(100));
  EXPECT_THAT(named_running(world), testing::HasSubstr("killing"));
  EXPECT_EQ(world.signals, (std::vector<int>{SIGTERM, SIGKILL}));
  world.happens(WorkerExited{1, kKilled, in(JobPhase::kDone)});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 1) << "it may have left something undone";
  EXPECT_EQ(world.finished->reason, "worker 1 did not exit within 1 s after the job was done");
}

TEST(Supervision, SaysThatTheJobWaitsBelowItsMinimum) {
  World world({.np = 2, .min_np = 2, .max_np = 2, .max_restarts = 0});
  world.happens(WorkerExited{1, kKilled, in(JobPhase::kRunning)});
  const auto* said = std::get_if<Say>(&world.last.back());
  ASSERT_NE(said, nullptr);
  EXPECT_THAT(said->text, testing::HasSubstr("only 1 of at least 2 workers (--min-np) run"));
  EXPECT_THAT(said->text, testing::HasSubstr("waits 60 s for more"));
}

TEST(Supervision, DoesNotReplaceARemovedWorkerHoweverItEnds) {
  World world(two_workers());
  world.happens(JobStateChanged{JobPhase::kRunning, "", true});
  const ExitStatus aborted{.code = 0, .signal = SIGABRT};
  world.happens(
      WorkerExited{1, aborted, {JobPhase::kRunning, true, WorkerReport::Left::kRemoved, false}});
  EXPECT_EQ(world.started.size(), 2U);
  EXPECT_THAT(std::get<Say>(world.last.back()).text,
              testing::AllOf(testing::HasSubstr("worker 1 was removed on request, and died of "
                                                "signal 6"),
                             testing::HasSubstr("throws Error(kRemoved)")));
  world.happens(WorkerExited{0, kSuccess, in(JobPhase::kDone)});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 0);
  EXPECT_THAT(world.finished->reason, testing::HasSubstr("worker 1 was removed on request, and "));
}

TEST(Supervision, AWorkerThatLeavesIsNotReplaced) {
  World world(two_workers());
  world.happens(WorkerExited{0, kSuccess, in(JobPhase::kRunning)});
  EXPECT_EQ(world.started.size(), 2U);
  world.happens(WorkerExited{1, kSuccess, in(JobPhase::kRunning)});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 1);
}

TEST(Supervision, AFailedJobEndsItsWorkersWithItsReason) {
  World world({.np = 1, .max_np = 1, .kill_grace = Milliseconds(100)});
  world.happens(JobStateChanged{JobPhase::kFailed, "below minimum"});
  EXPECT_TRUE(world.signals.empty()) << "it has been told and may end by itself";
  world.passes(Milliseconds(100));
  EXPECT_EQ(world.signals, std::vector<int>{SIGTERM});
  world.happens(WorkerExited{0, kKilled, in(JobPhase::kFailed)});
  EXPECT_EQ(world.started.size(), 1U);
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->reason, "the job failed: below minimum");
  EXPECT_TRUE(std::none_of(world.last.begin(), world.last.end(), [](const Action& action) {
    return std::holds_alternative<Say>(action);
  })) << "said twice";
}

/// An agent with one worker, in a job that runs.
World agent(bool in_quarantine = false) {
  World world({.np = 1, .max_np = 1, .max_restarts = 1, .joined = true}, in_quarantine);
  world.happens(JobStateChanged{JobPhase::kRunning, "", true});
  return world;
}

TEST(Supervision, InQuarantineAFailedWorkerIsReplacedOnAnotherHost) {
  World world = agent();
  world.happens(QuarantineChanged{true});
  EXPECT_TRUE(world.signals.empty()) << "a worker that runs is left alone";
  world.happens(WorkerExited{0, kCode3, in(JobPhase::kRunning)});
  EXPECT_EQ(world.started.size(), 1U);
  EXPECT_EQ(world.wanted_elsewhere, std::vector<int>{0});
  world.happens(WorkerReplaced{0});
  world.happens(QuarantineChanged{false});
  EXPECT_EQ(world.started.size(), 1U) << "the job has a worker for it";
  EXPECT_FALSE(world.finished) << "the host may get workers again";
  world.happens(SpawnWanted{1});
  EXPECT_EQ(world.started.size(), 2U);
  world.happens(WorkerExited{0, kKilled, in(JobPhase::kRunning)});
  EXPECT_EQ(world.started.size(), 3U) << "a worker that went elsewhere is no restart here";
}

TEST(Supervision, WithoutRoomElsewhereItIsStartedAgainAfterTheQuarantine) {
  World world = agent();
  world.happens(QuarantineChanged{true});
  world.happens(WorkerExited{0, kCode3, in(JobPhase::kRunning)});
  world.happens(JobStateChanged{JobPhase::kRunning, "", true});
  EXPECT_EQ(world.started.size(), 1U);
  world.happens(QuarantineChanged{false});
  EXPECT_EQ(world.started.size(), 2U);
  world.happens(WorkerReplaced{0});
  world.happens(WorkerExited{0, kSuccess, {JobPhase::kDone, false, WorkerReport::Left::kFinished}});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 0);
}

TEST(Supervision, ALauncherThatBeginsInQuarantineStartsItsWorkersAfterIt) {
  World world = agent(true);
  EXPECT_TRUE(world.started.empty());
  EXPECT_FALSE(world.finished);
  world.happens(QuarantineChanged{false});
  EXPECT_EQ(world.started.size(), 1U);
}

TEST(Supervision, AJobThatIsDoneHasNotFailedWhereTheHostWasInQuarantine) {
  for (const bool replaced : {false, true}) {
    World world = agent();
    world.happens(QuarantineChanged{true});
    world.happens(WorkerExited{0, kCode3, in(JobPhase::kRunning)});
    if (replaced) world.happens(WorkerReplaced{0});
    world.happens(JobStateChanged{JobPhase::kDone, ""});
    ASSERT_TRUE(world.finished);
    EXPECT_EQ(world.finished->exit_code, 0);
    EXPECT_EQ(world.finished->reason, "") << "what is missing on one host may be on another";
  }
}

TEST(Supervision, DrainsOnTheFirstSignalThenTerminatesThenKills) {
  World world({.np = 1, .max_np = 1, .drain = Milliseconds(1000), .kill_grace = Milliseconds(100)});
  world.happens(JobStateChanged{JobPhase::kRunning, ""});
  world.happens(SignalReceived{SIGINT});
  EXPECT_EQ(world.stops, 1);
  world.passes(Milliseconds(999));
  EXPECT_TRUE(world.signals.empty());
  EXPECT_EQ(world.supervision.next_tick(), world.now + Milliseconds(1));
  world.passes(Milliseconds(1));
  EXPECT_EQ(world.signals, std::vector<int>{SIGTERM});
  world.passes(Milliseconds(100));
  EXPECT_EQ(world.signals, (std::vector<int>{SIGTERM, SIGKILL}));
  world.happens(WorkerExited{0, kKilled, in(JobPhase::kRunning)});
  EXPECT_EQ(world.started.size(), 1U) << "what we ended is not replaced";
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->reason, "stopped by SIGINT");
}

/// A job of two workers that is done, and one of them has exited when SIGTERM comes.
World terminated_once_done(bool joined) {
  World world({.np = 2,
               .max_np = 2,
               .joined = joined,
               .drain = Milliseconds(1000),
               .kill_grace = Milliseconds(100)});
  world.happens(JobStateChanged{JobPhase::kRunning, ""});
  world.happens(WorkerExited{0, kSuccess, in(JobPhase::kDone)});
  world.happens(SignalReceived{SIGTERM});
  EXPECT_EQ(
      named_running(world),
      "SIGTERM: the job is over; waiting for  to exit, for at most 1 s more (--drain-seconds) "
      "(again to stop them at once)");
  EXPECT_TRUE(world.signals.empty()) << "a worker may have something to save";
  EXPECT_EQ(world.stops + world.drains, 0);
  return world;
}

TEST(Supervision, OnceTheJobIsDoneASignalLeavesTheWorkersTimeToEnd) {
  for (const bool joined : {false, true}) {
    World world = terminated_once_done(joined);
    world.passes(Milliseconds(999));
    world.happens(WorkerExited{1, kSuccess, in(JobPhase::kDone)});
    ASSERT_TRUE(world.finished);
    EXPECT_EQ(world.finished->exit_code, 0) << "nothing was cut short";
    EXPECT_EQ(world.finished->reason, "");
  }
}

TEST(Supervision, OnceTheJobIsDoneWorkersThatASignalCutsShortMakeItFail) {
  for (const bool joined : {false, true}) {
    for (const bool again : {false, true}) {
      World world = terminated_once_done(joined);
      if (again) {
        world.happens(SignalReceived{SIGTERM});
      } else {
        world.passes(Milliseconds(1000));
      }
      EXPECT_EQ(world.signals, std::vector<int>{SIGTERM});
      world.passes(Milliseconds(100));
      world.happens(WorkerExited{1, kKilled, in(JobPhase::kDone)});
      ASSERT_TRUE(world.finished);
      EXPECT_EQ(world.finished->exit_code, 1) << "it may have left something undone";
      EXPECT_EQ(world.finished->reason, "stopped by SIGTERM after the job was done");
    }
  }
}

TEST(Supervision, OnceTheJobIsDoneAWorkerThatFailsAfterASignalMakesItFail) {
  World world = terminated_once_done(false);
  world.happens(WorkerExited{1, kCode3, in(JobPhase::kDone)});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 1);
}

TEST(Supervision, OnceTheJobIsOverSlurmsSigtermLeavesTimeToSave) {
  World world({.np = 1, .max_np = 1, .sigterm_repeats = true, .drain = Milliseconds(1000)});
  world.happens(JobStateChanged{JobPhase::kRunning, ""});
  world.happens(JobStateChanged{JobPhase::kDone, ""});
  world.happens(SignalReceived{SIGTERM});
  EXPECT_TRUE(world.signals.empty());
  world.passes(Milliseconds(1000));
  EXPECT_EQ(world.signals, std::vector<int>{SIGTERM});
}

TEST(Supervision, FurtherSignalsDoNotWait) {
  World world({.np = 1, .max_np = 1});
  world.happens(JobStateChanged{JobPhase::kRunning, ""});
  world.happens(SignalReceived{SIGTERM});
  world.happens(SignalReceived{SIGTERM});
  EXPECT_EQ(world.signals, std::vector<int>{SIGTERM});
  world.happens(SignalReceived{SIGTERM});
  EXPECT_EQ(world.signals, (std::vector<int>{SIGTERM, SIGKILL}));
}

TEST(Supervision, ARepeatedSigtermOfSlurmIsNoHurry) {
  World world({.np = 1, .max_np = 1, .sigterm_repeats = true});
  world.happens(JobStateChanged{JobPhase::kRunning, ""});
  world.happens(SignalReceived{SIGTERM});
  world.happens(SignalReceived{SIGTERM});
  EXPECT_EQ(world.stops, 1);
  EXPECT_TRUE(world.signals.empty());
  world.happens(SignalReceived{SIGINT});
  EXPECT_EQ(world.signals, std::vector<int>{SIGTERM});
}

TEST(Supervision, StopsAtOnceBeforeTheJobHasBegun) {
  World world({.np = 1, .max_np = 1});
  world.happens(SignalReceived{SIGINT});
  EXPECT_EQ(world.stops, 0);
  EXPECT_EQ(world.signals, std::vector<int>{SIGTERM});
}

TEST(Supervision, SpawnsIntoFreeSlotsUpToTheMaximum) {
  World world({.np = 2, .max_np = 3});
  world.happens(WorkerExited{0, kSuccess, in(JobPhase::kRunning)});
  world.happens(SpawnWanted{5});
  ASSERT_EQ(world.started.size(), 4U);
  EXPECT_EQ(world.started[2].slot, 0);
  EXPECT_EQ(world.started[2].attempt, 1);
  EXPECT_EQ(world.started[3].slot, 2);
  EXPECT_EQ(world.started[3].attempt, 0);
}

TEST(Supervision, OfAJoinedLauncherLetsItsWorkersGoAndTheJobGoOn) {
  SupervisionOptions options = two_workers();
  options.joined = true;
  World world(options);
  world.happens(JobStateChanged{JobPhase::kRunning, ""});
  world.happens(SignalReceived{SIGTERM});
  EXPECT_EQ(world.drains, 1);
  EXPECT_EQ(world.stops, 0);
  const WorkerReport removed{JobPhase::kRunning, true, WorkerReport::Left::kRemoved};
  world.happens(WorkerExited{0, kSuccess, removed});
  EXPECT_FALSE(world.finished);
  world.happens(WorkerExited{1, kSuccess, removed});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 75);
}

/// On a signal, whose workers are then stopped where they are.
Finish departure(const WorkerReport& report, const Event& cause = SignalReceived{SIGTERM}) {
  World world({.np = 1, .max_np = 1, .joined = true, .drain = Milliseconds(1000)});
  world.happens(JobStateChanged{JobPhase::kRunning, "", true});
  world.happens(cause);
  world.passes(Milliseconds(1000));
  EXPECT_EQ(world.signals, std::vector<int>{SIGTERM});
  world.happens(JobStateChanged{report.phase, ""});
  world.happens(WorkerExited{0, {.code = 0, .signal = SIGTERM}, report});
  return world.finished.value_or(Finish{-1, ""});
}

TEST(Supervision, OfAJoinedLauncherSaysWhatBecameOfItsWorkersAndOfTheJob) {
  WorkerReport report = in(JobPhase::kRunning);
  Finish end = departure(report);
  EXPECT_EQ(end.exit_code, 75);
  EXPECT_THAT(end.reason, testing::HasSubstr("stopped where they were; the job goes on without"));
  report.others = false;
  end = departure(report);
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.reason, testing::HasSubstr("were the job's last"));
  end = departure(in(JobPhase::kDone));
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_EQ(end.reason, "stopped by SIGTERM");
  end = departure(in(JobPhase::kFailed));
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_EQ(departure(in(JobPhase::kRunning), StarterGone{}).exit_code, 1);
}

TEST(Supervision, OfAJoinedLauncherWhoseWorkersWereRemovedHasNotFailed) {
  SupervisionOptions options = two_workers();
  options.joined = true;
  World world(options);
  world.happens(JobStateChanged{JobPhase::kRunning, ""});
  const WorkerReport removed{JobPhase::kRunning, true, WorkerReport::Left::kRemoved};
  for (const int slot : {0, 1}) world.happens(WorkerExited{slot, kSuccess, removed});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 0);
}

/// An agent with a worker that the server does not let go.
World drained_agent(bool others) {
  World world({.np = 1, .max_np = 1, .joined = true, .drain = Milliseconds(1000)});
  world.happens(JobStateChanged{JobPhase::kRunning, "", true});
  world.happens(SignalReceived{SIGTERM});
  world.happens(SlotsChanged{0, Milliseconds(1000)});
  EXPECT_EQ(world.removed, std::vector<int>{0});
  world.happens(RemovalRefused{"cannot remove rank 0", others});
  return world;
}

TEST(Supervision, WhereTheJobsLastWorkersAreToLeaveTheJobStops) {
  World world = drained_agent(false);
  EXPECT_EQ(world.stops, 0) << "another host may be about to join";
  world.passes(Milliseconds(500));
  world.happens(RemovalRefused{"cannot remove rank 0", false});
  EXPECT_EQ(world.stops, 1);
  EXPECT_THAT(std::get<Say>(world.last.front()).text,
              testing::HasSubstr("no worker of another host would be left: the job stops"));
  world.happens(RemovalRefused{"cannot remove rank 0", false});
  EXPECT_EQ(world.stops, 1);
  world.happens(JobStateChanged{JobPhase::kDone, "the job was stopped on request", false, false,
                                false, true});
  world.happens(WorkerExited{0, kSuccess, in(JobPhase::kDone)});
  EXPECT_TRUE(world.signals.empty());
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 1) << "as of any job that a signal stops";
  EXPECT_THAT(world.finished->reason, testing::StartsWith("stopped by SIGTERM: the job's last"));
}

TEST(Supervision, WhereAnotherHostGoesOnTheJobDoesNotStop) {
  World world = drained_agent(true);
  EXPECT_EQ(std::get<Say>(world.last.front()).text,
            "cannot remove rank 0; it is asked for again and again");
  world.passes(Milliseconds(999));
  world.happens(RemovalRefused{"cannot remove rank 0", true});
  EXPECT_TRUE(world.last.empty()) << "said once";
  world.happens(RemovalRefused{"cannot remove rank 0 yet", true});
  EXPECT_EQ(std::get<Say>(world.last.front()).text,
            "cannot remove rank 0 yet; it is asked for again and again")
      << "the reason has changed";
  world.happens(RemovalRefused{"cannot remove rank 0", true});
  EXPECT_TRUE(world.last.empty()) << "each reason once";
  EXPECT_EQ(world.stops, 0);
}

/// The other one has asked for the stop.
TEST(Supervision, OfTwoAgentsThatLeaveAtOnceBothSayThatTheJobWasStopped) {
  World world = drained_agent(true);
  world.happens(JobStateChanged{JobPhase::kDone, "the job was stopped on request", false, false,
                                false, true});
  world.happens(WorkerExited{0, kSuccess, in(JobPhase::kDone)});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 1);
  EXPECT_EQ(world.finished->reason, "stopped by SIGTERM: the job was stopped, too");
}

TEST(Supervision, AHostThatIsToHaveFewerWorkersDoesNotStopTheJob) {
  World world({.np = 2, .max_np = 2, .joined = true});
  world.happens(JobStateChanged{JobPhase::kRunning, "", true});
  world.happens(SlotsChanged{1});
  world.happens(RemovalRefused{"cannot remove rank 1", false});
  EXPECT_EQ(world.stops, 0);
}

rendezvous::StatusReply status_with(const std::vector<std::string>& members, bool drained) {
  rendezvous::StatusReply status;
  status.phase = "running";
  for (const std::string& label : members) {
    status.view.members.emplace_back().label = label;
  }
  status.launchers.emplace();
  for (const int number : {0, 1}) {
    auto& launcher = status.launchers->emplace_back();
    launcher.number = number;
    launcher.slots = drained ? 0 : 1;
  }
  return status;
}

TEST(OtherHosts, AreThoseWithWorkersThatAreNotToLeave) {
  EXPECT_FALSE(others_go_on(status_with({"slot-1.0"}, false), 1));
  EXPECT_TRUE(others_go_on(status_with({"slot-0", "slot-1.0"}, false), 1));
  EXPECT_FALSE(others_go_on(status_with({"slot-0", "slot-1.0"}, true), 1));
  EXPECT_TRUE(others_go_on(status_with({"by hand"}, true), 1));
  auto status = status_with({"slot-1.0"}, false);
  status.phase = "recovering";
  EXPECT_TRUE(others_go_on(status, 1)) << "some may come back";
}

TEST(Supervision, AWorkerThatCannotBeStartedIsNotTriedAgain) {
  World world({.np = 1, .max_np = 1});
  world.happens(WorkerNotStarted{0, "./x: Exec format error"});
  EXPECT_EQ(world.started.size(), 1U);
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 1);
  EXPECT_THAT(world.finished->reason, testing::HasSubstr("Exec format error"));
}

}  // namespace
}  // namespace elastic::launcher
