#include <filesystem>

#include <gmock/gmock.h>

#include "benchmarks/job/program_files.hpp"
#include "benchmarks/recovery/recovery_log.hpp"
#include "benchmarks/recovery/recovery_time.hpp"
#include "benchmarks/recovery/worker_digits.hpp"

namespace elastic::bench {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kMs = 1'000'000;
constexpr std::uint32_t kAll = 0b111;
constexpr std::uint32_t kWithoutOne = 0b101;

// The view change, as recorded by the worker that returns last.
constexpr ChangeRecord kChange{.generation = 2,
                               .noticed_ns = 16 * kMs,
                               .reported_ns = 18 * kMs,
                               .decided_ns = 21 * kMs,
                               .installed_ns = 22 * kMs};

// Three workers, calls of 2 ms; worker 1 dies 1 ms into call 3, which ends at `end` on `rank`.
std::vector<CallRecord> calls_until(std::int64_t end_ns, std::uint32_t counted) {
  return {{0, 0, 9 * kMs, kAll},
          {1, 10 * kMs, 12 * kMs, kAll},
          {2, 12 * kMs, 14 * kMs, kAll},
          {3, 14 * kMs, end_ns, counted},
          {4, end_ns, end_ns + 2 * kMs, kWithoutOne}};
}

RecoveryRun run_with(std::vector<CallRecord> zero, std::vector<CallRecord> two) {
  return {.workers = 3,
          .victims = {1},
          .warmup = 1,
          .fault_ns = 15 * kMs,
          .survivors = {{0, {std::move(zero), {}}}, {2, {std::move(two), kChange}}}};
}

std::string failure_of(const RecoveryRun& run) {
  return recovery_time(run).status().message();
}

TEST(RecoveryTime, IsThatOfTheLastSurvivorLessAnUndisturbedCall) {
  const auto time = recovery_time(
      run_with(calls_until(20 * kMs, kWithoutOne), calls_until(25 * kMs, kWithoutOne)));
  ASSERT_TRUE(time.ok()) << time.status().message();
  EXPECT_DOUBLE_EQ(time.value().undisturbed_ms, 2);
  EXPECT_DOUBLE_EQ(time.value().return_ms, 10);
  EXPECT_DOUBLE_EQ(time.value().recovery_ms, 8);
  EXPECT_DOUBLE_EQ(time.value().change_ms, 7);
  EXPECT_FALSE(time.value().committed);
}

TEST(RecoveryTime, GoesIntoThePhasesOfTheLastSurvivor) {
  const auto time = recovery_time(
      run_with(calls_until(20 * kMs, kWithoutOne), calls_until(25 * kMs, kWithoutOne)));
  ASSERT_TRUE(time.ok()) << time.status().message();
  const RecoveryPhases& phases = time.value().phases;
  EXPECT_DOUBLE_EQ(phases.detect, 1);
  EXPECT_DOUBLE_EQ(phases.freeze, 2);
  EXPECT_DOUBLE_EQ(phases.decide, 3);
  EXPECT_DOUBLE_EQ(phases.relink, 1);
  EXPECT_DOUBLE_EQ(phases.replay, 3);
}

TEST(RecoveryTime, IsNotNegativeWhereTheCallWasQuick) {
  const auto calls = calls_until(16 * kMs, kWithoutOne);
  const auto time = recovery_time(run_with(calls, calls));
  ASSERT_TRUE(time.ok()) << time.status().message();
  EXPECT_DOUBLE_EQ(time.value().return_ms, 1);
  EXPECT_DOUBLE_EQ(time.value().recovery_ms, 0);
}

TEST(RecoveryTime, OfTwoVictimsOneMayBeCountedForLonger) {
  const auto calls_of = [](std::uint32_t third) {
    return std::vector<CallRecord>{{0, 0, 9 * kMs, 0b1111},
                                   {1, 10 * kMs, 12 * kMs, 0b1111},
                                   {2, 14 * kMs, 20 * kMs, third},
                                   {3, 20 * kMs, 24 * kMs, 0b1001}};
  };
  const auto run_of = [&](std::uint32_t third) {
    return RecoveryRun{.workers = 4,
                       .victims = {1, 2},
                       .warmup = 1,
                       .fault_ns = 15 * kMs,
                       .survivors = {{0, {calls_of(third), {}}}, {3, {calls_of(third), {}}}}};
  };
  const auto time = recovery_time(run_of(0b1101));
  ASSERT_TRUE(time.ok()) << time.status().message();
  EXPECT_DOUBLE_EQ(time.value().return_ms, 9);
  EXPECT_TRUE(time.value().committed);
  auto risen = run_of(0b1101);
  for (auto& [rank, survivor] : risen.survivors) survivor.calls[3].counted = 0b1011;
  EXPECT_THAT(failure_of(risen), HasSubstr("after it had been left out"));
}

TEST(RecoveryTime, CountsACommittedCall) {
  const auto time =
      recovery_time(run_with(calls_until(16 * kMs, kAll), calls_until(25 * kMs, kAll)));
  ASSERT_TRUE(time.ok()) << time.status().message();
  EXPECT_DOUBLE_EQ(time.value().recovery_ms, 10);
  EXPECT_TRUE(time.value().committed);
}

TEST(RecoveryTime, TakesOffAFasterCallOfTheSurvivors) {
  auto calls = calls_until(20 * kMs, kWithoutOne);
  calls[4].end_ns = calls[4].start_ns + kMs;
  const auto time = recovery_time(run_with(calls, calls));
  ASSERT_TRUE(time.ok()) << time.status().message();
  EXPECT_DOUBLE_EQ(time.value().undisturbed_ms, 2);
  EXPECT_DOUBLE_EQ(time.value().recovery_ms, 4);
}

TEST(RecoveryTime, RefusesSumsThatCannotBe) {
  const auto good = calls_until(20 * kMs, kWithoutOne);
  EXPECT_THAT(failure_of(run_with(good, calls_until(20 * kMs, kAll))),
              HasSubstr("another survivor has another result"));
  auto lost = good;
  lost[4].counted = 0b001;
  EXPECT_THAT(failure_of(run_with(lost, lost)), HasSubstr("a survivor was not counted"));
  auto risen = good;
  risen[4].counted = kAll;
  EXPECT_THAT(failure_of(run_with(risen, risen)), HasSubstr("after it had been left out"));
  auto early = good;
  early[2].counted = kWithoutOne;
  EXPECT_THAT(failure_of(run_with(early, early)), HasSubstr("before the fault"));
  auto never = good;
  never[3].counted = never[4].counted = kAll;
  EXPECT_THAT(failure_of(run_with(never, never)), HasSubstr("no call without the victim"));
}

/// A run without a death: all three workers go through a view change that ends at `installed_ns`.
RecoveryRun without_victims(std::int64_t installed_ns, std::uint32_t counted) {
  const std::vector<CallRecord> calls{{0, 0, 9 * kMs, kAll},
                                      {1, 10 * kMs, 12 * kMs, kAll},
                                      {2, 12 * kMs, 14 * kMs, kAll},
                                      {3, 14 * kMs, 16 * kMs, kAll},
                                      {4, 16 * kMs, 25 * kMs, counted},
                                      {5, 25 * kMs, 28 * kMs, counted}};
  ChangeRecord change = kChange;
  change.installed_ns = installed_ns;
  return {.workers = 3,
          .victims = {},
          .warmup = 1,
          .fault_ns = 15 * kMs,
          .survivors = {{0, {calls, change}}, {1, {calls, change}}, {2, {calls, change}}}};
}

TEST(RecoveryTime, WithoutVictimsIsThatOfTheCallThatEndedInTheNewView) {
  const auto time = recovery_time(without_victims(22 * kMs, kAll));
  ASSERT_TRUE(time.ok()) << time.status().message();
  EXPECT_DOUBLE_EQ(time.value().undisturbed_ms, 2);
  EXPECT_DOUBLE_EQ(time.value().return_ms, 10);
  EXPECT_DOUBLE_EQ(time.value().recovery_ms, 8);
  EXPECT_DOUBLE_EQ(time.value().phases.replay, 3);
}

TEST(RecoveryTime, WithoutVictimsNoWorkerMayBeLostAndTheFaultHasToShow) {
  EXPECT_THAT(failure_of(without_victims(22 * kMs, kWithoutOne)),
              HasSubstr("a survivor was not counted"));
  EXPECT_THAT(failure_of(without_victims(13 * kMs, kAll)), HasSubstr("changed nothing"));
}

TEST(WorkerDigits, TellWhoWasCounted) {
  for (int call = 0; call < 5; ++call) {
    const std::int64_t sum = digit_of(call, 0) + digit_of(call, kMostDigits - 1);
    EXPECT_EQ(counted_in(std::vector<std::int64_t>{sum, sum}, call, kMostDigits).value(),
              1U | 1U << (kMostDigits - 1));
  }
}

TEST(WorkerDigits, RefuseWrongSums) {
  const auto failure = [](std::vector<std::int64_t> sums, int call) {
    return counted_in(sums, call, 2).status().message();
  };
  const std::int64_t both = digit_of(0, 0) + digit_of(0, 1);
  EXPECT_THAT(failure({both + digit_of(0, 1)}, 0), HasSubstr("was counted as 2"));
  EXPECT_THAT(failure({both}, 1), HasSubstr("contributed 2 and was counted as 1"));
  EXPECT_THAT(failure({both, 1}, 0), HasSubstr("element 1 has 1"));
  EXPECT_THAT(failure({100}, 0), HasSubstr("high places"));
  EXPECT_THAT(failure({-1}, 0), HasSubstr("wrong sum -1"));
}

TEST(RecoveryLog, ComesBackAsWritten) {
  ScratchFolder folder;
  ASSERT_TRUE(ScratchFolder::make(folder).ok());
  const auto file = calls_file(folder.path(), 3);
  const std::vector<CallRecord> calls{{0, 1, 2, kAll}, {1, 1'000'000'000'000, 3, kWithoutOne}};
  ASSERT_TRUE(write_calls(file, calls).ok());
  EXPECT_EQ(read_calls(file).value(), calls);
  EXPECT_THAT(read_calls(folder.path() / "none").status().message(), HasSubstr("is missing"));
  EXPECT_FALSE(read_fault(fault_file(folder.path())).ok());
  const auto change = change_file(folder.path(), 3);
  ASSERT_TRUE(write_change(change, kChange).ok());
  EXPECT_EQ(read_change(change).value(), kChange);
  EXPECT_FALSE(read_change(file.parent_path() / "none").ok());
}

}  // namespace
}  // namespace elastic::bench
