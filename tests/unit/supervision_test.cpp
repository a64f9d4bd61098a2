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
  world.happens(WorkerExited{0, kSuccess, JobPhase::kDone});
  EXPECT_FALSE(world.finished);
  world.happens(WorkerExited{1, kSuccess, JobPhase::kDone});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 0);
  EXPECT_EQ(world.finished->reason, "");
}

TEST(Supervision, ReplacesADeadWorkerInItsSlot) {
  World world(two_workers());
  world.happens(WorkerExited{1, kKilled, JobPhase::kRunning});
  ASSERT_EQ(world.started.size(), 3U);
  EXPECT_EQ(world.started[2].slot, 1);
  EXPECT_EQ(world.started[2].attempt, 1);
}

TEST(Supervision, GoesOnWithoutAWorkerWhenNoRestartsAreLeft) {
  World world(two_workers());
  world.happens(WorkerExited{1, kKilled, JobPhase::kRunning});
  world.happens(WorkerExited{1, kKilled, JobPhase::kRunning});
  EXPECT_EQ(world.started.size(), 3U);
  EXPECT_FALSE(world.finished);
  world.happens(WorkerExited{0, kSuccess, JobPhase::kDone});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 0) << "the others finished the job";
}

TEST(Supervision, FailsWithTheLastOutputWhenEveryWorkerDied) {
  World world({.np = 1, .max_np = 1, .max_restarts = 2});
  for (int death = 0; death < 3; ++death) {
    EXPECT_FALSE(world.finished);
    world.happens(WorkerExited{0, kCode3, JobPhase::kForming});
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
  world.happens(WorkerExited{0, kCode3, JobPhase::kDone});
  EXPECT_EQ(world.started.size(), 2U);
  world.happens(WorkerExited{1, kSuccess, JobPhase::kDone});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 1);
  EXPECT_EQ(world.finished->reason, "worker 0 exited with code 3 after the job was done");
}

TEST(Supervision, NamesTheFirstFailureAndNotOneThatWasReplaced) {
  World world({.np = 3, .max_np = 3, .max_restarts = 1});
  world.happens(WorkerExited{0, kKilled, JobPhase::kRunning});
  world.happens(WorkerExited{0, kSuccess, JobPhase::kRunning});
  world.happens(WorkerExited{2, kCode3, JobPhase::kRunning});
  world.happens(WorkerExited{1, kKilled, JobPhase::kRunning});
  ASSERT_TRUE(world.finished);
  EXPECT_THAT(world.finished->reason, testing::StartsWith("worker 2 exited with code 3"));
  EXPECT_FALSE(world.shows_output_of(0));
  EXPECT_TRUE(world.shows_output_of(1));
}

TEST(Supervision, NamesAProgramThatNeverJoins) {
  World world(two_workers());
  world.happens(WorkerExited{0, kSuccess, JobPhase::kForming});
  world.happens(WorkerExited{1, kSuccess, JobPhase::kForming});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 1);
  EXPECT_THAT(world.finished->reason, testing::HasSubstr("never called elastic::init"));
}

TEST(Supervision, AWorkerThatLeavesIsNotReplaced) {
  World world(two_workers());
  world.happens(WorkerExited{0, kSuccess, JobPhase::kRunning});
  EXPECT_EQ(world.started.size(), 2U);
  world.happens(WorkerExited{1, kSuccess, JobPhase::kRunning});
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->exit_code, 1);
}

TEST(Supervision, AFailedJobEndsItsWorkersWithItsReason) {
  World world({.np = 1, .max_np = 1, .kill_grace = Milliseconds(100)});
  world.happens(JobStateChanged{JobPhase::kFailed, "below minimum"});
  EXPECT_TRUE(world.signals.empty()) << "it has been told and may end by itself";
  world.passes(Milliseconds(100));
  EXPECT_EQ(world.signals, std::vector<int>{SIGTERM});
  world.happens(WorkerExited{0, kKilled, JobPhase::kFailed});
  EXPECT_EQ(world.started.size(), 1U);
  ASSERT_TRUE(world.finished);
  EXPECT_EQ(world.finished->reason, "the job failed: below minimum");
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
  world.happens(WorkerExited{0, kKilled, JobPhase::kRunning});
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
  world.happens(WorkerExited{0, kSuccess, JobPhase::kRunning});
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
