#include "rendezvous/launcher/supervision.hpp"

#include <algorithm>
#include <csignal>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace elastic::launcher {
namespace {

constexpr ExitStatus kSuccess{};
constexpr ExitStatus kCode3{.code = 3, .signal = 0};
constexpr ExitStatus kKilled{.code = 0, .signal = SIGKILL};

/// The server's report on a worker that began the job, or on one that could not join it.
WorkerReport in(JobPhase phase) {
  return {phase, /*joinable=*/phase == JobPhase::kRunning, WorkerReport::Left::kNot, true};
}
const WorkerReport kNotJoinable{JobPhase::kRunning, false, WorkerReport::Left::kNot, true};

/// Supervision with a clock that the test moves.
struct World {
  explicit World(SupervisionOptions options) : supervision(options) { note(supervision.begin()); }

  void note(const std::vector<Action>& actions) {
    last = actions;
    for (const auto& action : actions) {
      if (const auto* start = std::get_if<StartWorker>(&action)) started.push_back(*start);
      if (const auto* signal = std::get_if<SignalWorkers>(&action))
        signals.push_back(signal->number);
      if (std::holds_alternative<RequestStop>(action)) ++stops;
      if (const auto* finish = std::get_if<Finish>(&action)) finished = *finish;
    }
  }
  void happens(const Event& event) { note(supervision.decide(event, now)); }
  void passes(Milliseconds time) {
    now += time;
    happens(TimePassed{});
  }
  bool shows_output_of(int slot) const {
    return std::any_of(last.begin(), last.end(), [&](const Action& action) {
      const auto* show = std::get_if<ShowOutput>(&action);
      return show != nullptr && show->slot == slot;
    });
  }

  Supervision supervision;
  TimePoint now{};
  std::vector<Action> last;
  std::vector<StartWorker> started;
  std::vector<int> signals;
  int stops = 0;
  std::optional<Finish> finished;
};

SupervisionOptions two_workers() {
  return {.np = 2, .max_np = 2, .max_restarts = 1};
}

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
  EXPECT_EQ(world.finished->exit_code, 0);
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

TEST(Supervision, SaysThatTheJobWaitsBelowItsMinimum) {
  World world({.np = 2, .min_np = 2, .max_np = 2, .max_restarts = 0});
  world.happens(WorkerExited{1, kKilled, in(JobPhase::kRunning)});
  const auto* said = std::get_if<Say>(&world.last.back());
  ASSERT_NE(said, nullptr);
  EXPECT_THAT(said->text, testing::HasSubstr("only 1 of at least 2 workers (--min-np) run"));
  EXPECT_THAT(said->text, testing::HasSubstr("waits 60 s for more"));
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

TEST(Supervision, FurtherSignalsDoNotWait) {
  World world({.np = 1, .max_np = 1});
  world.happens(JobStateChanged{JobPhase::kRunning, ""});
  world.happens(SignalReceived{SIGTERM});
  world.happens(SignalReceived{SIGTERM});
  EXPECT_EQ(world.signals, std::vector<int>{SIGTERM});
  world.happens(SignalReceived{SIGTERM});
  EXPECT_EQ(world.signals, (std::vector<int>{SIGTERM, SIGKILL}));
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
