// A launcher that joined a job, while the job's server is away.
#include <csignal>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "supervision_world.hpp"

namespace elastic::launcher {
namespace {

using testing::HasSubstr;

const JobStateChanged kJoinable{JobPhase::kRunning, "", true};
/// A server that was started again says this before the members have come back to it.
const JobStateChanged kRecovering{JobPhase::kRunning, "", false, false, true};

/// A launcher knows no more of a worker that ended while no server answered.
WorkerReport unanswered() {
  WorkerReport report = in(JobPhase::kRunning);
  report.member = false;
  report.unanswered = true;
  return report;
}

std::string said(const World& world) {
  std::string text;
  for (const auto& action : world.last) {
    if (const auto* line = std::get_if<Say>(&action)) text += line->text + "\n";
  }
  return text;
}

/// In a job that runs.
World agent_with(int workers, int restarts = 3) {
  World world({.np = workers,
               .max_np = workers,
               .max_restarts = restarts,
               .joined = true,
               .start = Milliseconds(60000),
               .outage = Milliseconds(600000)});
  world.happens(kJoinable);
  return world;
}

TEST(SupervisionOutage, TheLastWorkerIsStartedAgainWhenTheServerIsBack) {
  World world = agent_with(1);
  world.happens(ServerMissing{Milliseconds(10100)});
  world.happens(WorkerExited{0, kKilled, unanswered()});
  EXPECT_EQ(world.started.size(), 1U) << "it could not join";
  EXPECT_FALSE(world.finished) << "the server may come back";
  EXPECT_THAT(said(world), HasSubstr("to be started again when the job's server is back. No worker "
                                     "is left here: the server is waited for, for 600 s in all"));
  world.happens(ServerMissing{Milliseconds(70000)});
  world.happens(kRecovering);
  EXPECT_FALSE(world.finished) << "the server is back, and takes no worker yet";
  EXPECT_EQ(world.started.size(), 1U);
  world.happens(kJoinable);
  EXPECT_EQ(world.started.size(), 2U);
  EXPECT_EQ(world.supervision.next_tick(), TimePoint::max());
}

TEST(SupervisionOutage, WithWorkersLeftADeadOneIsStartedAgainToo) {
  World world = agent_with(2);
  world.happens(WorkerExited{1, kKilled, unanswered()});
  EXPECT_THAT(said(world), testing::Not(HasSubstr("No worker is left here")));
  world.happens(ServerMissing{Milliseconds(3600000)});
  EXPECT_FALSE(world.finished) << "workers train on";
  EXPECT_EQ(world.supervision.next_tick(), TimePoint::max());
  world.happens(kJoinable);
  EXPECT_EQ(world.started.size(), 3U);
}

/// A reason that is not the true one sends the user to the wrong place.
TEST(SupervisionOutage, SaysWhatKeepsAWorkerFromJoiningWhereThatIsKnown) {
  const World running = agent_with(2);
  World moment = running;
  moment.happens(ServerMissing{Milliseconds(3000)});
  moment.happens(WorkerExited{1, kKilled, kNotJoinable});
  EXPECT_THAT(said(moment), testing::Not(HasSubstr("server is back"))) << "it has answered";
  World back = running;
  back.happens(kRecovering);
  World last = back;
  back.happens(WorkerExited{1, kKilled, kNotJoinable});
  EXPECT_EQ(said(back),
            "worker 1 died of signal 9 (Killed); to be started again when the job's workers have "
            "come back to its server, which was started again\n");
  last.happens(WorkerExited{1, kKilled, kNotJoinable});
  last.happens(WorkerExited{0, kKilled, kNotJoinable});
  EXPECT_THAT(said(last), HasSubstr(", or after 60 s (--start-timeout-ms)\n"));
  World at_end = running;
  WorkerReport finished = kNotJoinable;
  finished.left = WorkerReport::Left::kFinished;
  at_end.happens(WorkerExited{0, kSuccess, finished});
  at_end.happens(WorkerExited{1, kKilled, kNotJoinable});
  EXPECT_THAT(said(at_end),
              HasSubstr("if the job goes on: a worker has said that it is at its end"));
  World unknown = running;
  unknown.happens(WorkerExited{1, kKilled, kNotJoinable});
  EXPECT_THAT(said(unknown),
              HasSubstr("the program has not come to elastic::run, or has left it (or else the "
                        "disk of the server's journal is full)\n"));
}

/// The server answers the question about the worker as soon as it is back.
TEST(SupervisionOutage, AServerThatIsAwayForAMomentCostsNoWorkerEither) {
  World world = agent_with(1);
  world.happens(kRecovering);
  world.happens(WorkerExited{0, kKilled, {JobPhase::kRunning, false, WorkerReport::Left::kNot}});
  EXPECT_FALSE(world.finished);
  world.happens(kJoinable);
  EXPECT_EQ(world.started.size(), 2U);
}

TEST(SupervisionOutage, WithoutWorkersTheServerIsNotWaitedForForEver) {
  World world = agent_with(1);
  world.happens(ServerMissing{Milliseconds(20000)});
  world.happens(WorkerExited{0, kKilled, unanswered()});
  world.passes(Milliseconds(579999));
  EXPECT_FALSE(world.finished);
  EXPECT_EQ(world.supervision.next_tick(), world.now + Milliseconds(1));
  world.passes(Milliseconds(1));
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 1);
  EXPECT_EQ(world.finished->reason,
            "worker 0 died of signal 9 (Killed), no worker is left, and the job's server does not "
            "come back: it was waited for, for 600 s");
}

TEST(SupervisionOutage, ALateDeathStillLeavesTimeForTheServer) {
  World world = agent_with(1);
  world.happens(ServerMissing{Milliseconds(3600000)});
  world.happens(WorkerExited{0, kKilled, unanswered()});
  world.passes(Milliseconds(59999));
  EXPECT_FALSE(world.finished);
  world.passes(Milliseconds(1));
  EXPECT_TRUE(world.finished);
}

/// One that lives in an elasticrun ends with it. The workers have waited for it before they failed.
TEST(SupervisionOutage, AServerThatIsNotStartedAgainIsNotWaitedForForLong) {
  World world({.np = 1, .max_np = 1, .joined = true, .start = Milliseconds(60000)}, false, false);
  world.happens(kJoinable);
  world.happens(ServerMissing{Milliseconds(20000)});
  World late = world;
  world.happens(WorkerExited{0, kCode3, unanswered()});
  EXPECT_THAT(said(world), HasSubstr("the server is waited for, for 60 s in all"));
  EXPECT_EQ(world.supervision.next_tick(), world.now + Milliseconds(40000));
  late.happens(ServerMissing{Milliseconds(211000)});
  late.happens(WorkerExited{0, kCode3, unanswered()});
  EXPECT_THAT(said(late), testing::Not(HasSubstr("is waited for")));
  EXPECT_EQ(late.supervision.next_tick(), late.now);
  late.passes(Milliseconds(0));
  ASSERT_TRUE(late.finished);
  EXPECT_EQ(late.finished->exit_code, 1);
}

/// Without a journal the server that is back knows nothing of the job.
TEST(SupervisionOutage, AnEndBeforeAServerThatFormsTheJobAnewIsTakenForFinishedToo) {
  World world = agent_with(2);
  world.happens(ServerMissing{Milliseconds(5000)});
  world.happens(WorkerExited{0, {}, unanswered()});
  world.happens(JobStateChanged{JobPhase::kForming, ""});
  world.happens(WorkerExited{1, {}, {JobPhase::kForming, false, WorkerReport::Left::kNot}});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 0);
}

/// The server waits for a worker, and this launcher has one: the job begins again.
TEST(SupervisionOutage, WhereNoMemberComesBackTheWorkerIsStartedAllTheSame) {
  for (const JobStateChanged& alone :
       {kRecovering, JobStateChanged{JobPhase::kForming, "", true}}) {
    World world = agent_with(1);
    world.happens(ServerMissing{Milliseconds(20000)});
    world.happens(WorkerExited{0, kKilled, unanswered()});
    world.happens(alone);
    world.passes(Milliseconds(59999));
    EXPECT_EQ(world.started.size(), 1U);
    EXPECT_FALSE(world.finished);
    world.passes(Milliseconds(1));
    EXPECT_EQ(world.started.size(), 2U);
    EXPECT_FALSE(world.finished);
  }
}

TEST(SupervisionOutage, WithoutRestartsNoServerIsWaitedFor) {
  World world = agent_with(1, 0);
  world.happens(ServerMissing{Milliseconds(20000)});
  world.happens(WorkerExited{0, kKilled, unanswered()});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 1);
}

TEST(SupervisionOutage, AWorkerThatUsesUpTheRestartsLetsNoneWait) {
  World world = agent_with(2, 1);
  for (const int slot : {0, 1}) world.happens(WorkerExited{slot, kKilled, unanswered()});
  world.happens(kJoinable);
  ASSERT_EQ(world.started.size(), 3U);
  world.happens(WorkerExited{0, kKilled, in(JobPhase::kRunning)});
  EXPECT_TRUE(world.finished) << "no worker runs, and none may be started";
}

TEST(SupervisionOutage, ASignalEndsTheWaitForTheServer) {
  World world = agent_with(1);
  world.happens(WorkerExited{0, kKilled, unanswered()});
  world.happens(SignalReceived{SIGTERM});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 1);
}

/// A server that is started again knows of no quarantine.
TEST(SupervisionOutage, AWorkerThatWaitedForTheEndOfAQuarantineIsStarted) {
  World world = agent_with(1);
  world.happens(QuarantineChanged{true});
  world.happens(WorkerExited{0, kCode3, in(JobPhase::kRunning)});
  world.happens(ServerMissing{Milliseconds(5000)});
  world.happens(kRecovering);
  world.happens(QuarantineChanged{false});
  EXPECT_FALSE(world.finished);
  world.happens(kJoinable);
  EXPECT_EQ(world.started.size(), 2U);
}

/// The end of a job that runs is told by its server.
TEST(SupervisionOutage, AWorkerThatCannotJoinYetIsNoReasonToLeave) {
  World world = agent_with(1);
  world.happens(WorkerExited{0, kKilled, kNotJoinable});
  EXPECT_FALSE(world.finished);
  World back = world;
  back.happens(kJoinable);
  EXPECT_EQ(back.started.size(), 2U);
  world.happens(JobStateChanged{JobPhase::kDone, ""});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 0) << "the job is done without it";
}

TEST(SupervisionOutage, WorkersThatEndWellAreTakenForFinished) {
  World world = agent_with(2);
  world.happens(WorkerExited{0, kSuccess, unanswered()});
  EXPECT_EQ(said(world),
            "worker 0 ended with code 0 while the job's server was away: taken for finished\n");
  World back = world;
  world.happens(WorkerExited{1, kSuccess, unanswered()});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 0);
  EXPECT_EQ(world.finished->reason,
            "the workers of this host ended with code 0 while the job's server was away: taken for "
            "finished");
  back.happens(kRecovering);
  back.happens(WorkerExited{1, kSuccess, {JobPhase::kRunning, false}});
  ASSERT_TRUE(back.finished) << "the server was back after the worker's end";
  EXPECT_EQ(back.finished->exit_code, 0);
}

TEST(SupervisionOutage, WorkersThatEndWellDoNotHideOneThatDied) {
  World world = agent_with(2);
  world.happens(WorkerExited{0, kKilled, unanswered()});
  world.happens(WorkerExited{1, kSuccess, unanswered()});
  ASSERT_TRUE(world.finished) << "the training is over";
  EXPECT_EQ(world.finished->exit_code, 1);
  EXPECT_EQ(world.finished->reason,
            "worker 0 died of signal 9 (Killed); the other workers of this host ended with code 0 "
            "while the job's server was away");
}

TEST(SupervisionOutage, AJobThatHadNotBegunHasNotFinished) {
  World world({.np = 1, .max_np = 1, .joined = true});
  WorkerReport report = in(JobPhase::kForming);
  report.member = false;
  report.unanswered = true;
  world.happens(WorkerExited{0, kSuccess, report});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 5);
}

TEST(SupervisionOutage, ALauncherWithTheServerStaysForTheWorkersOfOthers) {
  World world({.np = 1, .max_np = 1});
  world.happens(JobStateChanged{JobPhase::kRunning, ""});
  WorkerReport report = kNotJoinable;
  report.others = false;
  World alone = world;
  alone.happens(WorkerExited{0, kKilled, report});
  EXPECT_TRUE(alone.finished);
  world.happens(WorkerExited{0, kKilled, kNotJoinable});
  EXPECT_FALSE(world.finished);
}

}  // namespace
}  // namespace elastic::launcher
