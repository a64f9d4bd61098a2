#include "runtime/step_clock.hpp"

#include <thread>

#include <gtest/gtest.h>

namespace elastic::runtime {
namespace {

constexpr Milliseconds kWhile{3};
/// The least time that the clock may report: it counts ticks, and estimates their length.
constexpr Duration kAbout = kWhile * 9 / 10;

void pass_time() {
  const TimePoint end = Clock::now() + kWhile;
  while (Clock::now() < end) {
  }
}

class StepClockTest : public ::testing::Test {
 protected:
  /// One change of the view, noticed now and over when something of the length of `kWhile` is.
  void change_view() {
    changes_.notice(generation_);
    pass_time();
    rendezvous::View view;
    view.generation = ++generation_;
    changes_.decide(view);
    changes_.install(generation_);
  }

  ViewChangeClock changes_;
  std::uint64_t generation_ = 0;
  StepClock clock_;
};

TEST_F(StepClockTest, EveryMomentBelongsToTheInnermostPhase) {
  const TimePoint begin = Clock::now();
  {
    const StepClock::Running running(clock_, changes_);
    pass_time();
    {
      const LoadingData loading;
      pass_time();
      const Blocked blocked;
      pass_time();
    }
    const Blocked blocked(Phase::kViewChange);
    pass_time();
    clock_.end_step();
  }
  const Duration took = Clock::now() - begin;
  const StepTime step = clock_.times().latest;
  EXPECT_GE(step.data, kAbout);
  EXPECT_GE(step.compute, kAbout);
  EXPECT_GE(step.communication, kAbout);
  EXPECT_GE(step.view_change, kAbout);
  EXPECT_LE(step.total(), took);
}

TEST_F(StepClockTest, StepsAddUp) {
  const StepClock::Running running(clock_, changes_);
  pass_time();
  clock_.end_step();
  const StepTime first = clock_.times().latest;
  {
    const Blocked blocked;
    pass_time();
  }
  clock_.end_step();
  const StepTimes times = clock_.times();
  EXPECT_EQ(times.steps, 2U);
  EXPECT_EQ(first.communication, Duration(0));
  EXPECT_EQ(times.sum.compute, first.compute + times.latest.compute);
  EXPECT_EQ(times.sum.total(), first.total() + times.latest.total());
}

TEST_F(StepClockTest, AChangeOfTheViewIsNoCommunication) {
  changes_.install(++generation_);  // the first view is no change
  const StepClock::Running running(clock_, changes_);
  {
    const Blocked blocked;
    pass_time();
    change_view();
    changes_.resume();
    pass_time();
  }
  clock_.end_step();
  const StepTime step = clock_.times().latest;
  EXPECT_GE(step.view_change, kAbout);
  EXPECT_GE(step.communication, 2 * kAbout);
}

TEST_F(StepClockTest, AChangeWhileTheTrainerComputesTakesNothingOfThat) {
  changes_.install(++generation_);
  const StepClock::Running running(clock_, changes_);
  change_view();
  changes_.resume();
  {
    const Blocked blocked;
    pass_time();
  }
  clock_.end_step();
  const StepTime step = clock_.times().latest;
  EXPECT_GE(step.compute, kAbout);
  EXPECT_GE(step.communication, kAbout);
  EXPECT_EQ(step.view_change, Duration(0));
}

TEST_F(StepClockTest, OtherThreadsDoNotCount) {
  const StepClock::Running running(clock_, changes_);
  std::thread other([] {
    const LoadingData loading;
    const Blocked blocked;
    pass_time();
  });
  other.join();
  clock_.end_step();
  EXPECT_EQ(clock_.times().latest.communication, Duration(0));
  EXPECT_EQ(clock_.times().latest.data, Duration(0));
}

TEST_F(StepClockTest, OutsideOfARunNothingIsMeasured) {
  {
    const LoadingData loading;
    const Blocked blocked;
  }
  EXPECT_EQ(StepClock::of_this_thread(), nullptr);
  EXPECT_EQ(clock_.times().steps, 0U);
}

TEST_F(StepClockTest, TheSlowestIsWhoTookLongestByItself) {
  using std::chrono::nanoseconds;
  const StepTime waits{nanoseconds(1), nanoseconds(2), nanoseconds(900), nanoseconds(0)};
  const StepTime works{nanoseconds(500), nanoseconds(400), nanoseconds(1), nanoseconds(0)};
  clock_.compare(7, {waits, works, waits});
  const StepTimes times = clock_.times();
  EXPECT_EQ(times.slowest, 1);
  EXPECT_EQ(times.compared_commit, 7U);
  EXPECT_EQ(times.by_rank.size(), 3U);
}

}  // namespace
}  // namespace elastic::runtime
