#include "runtime/worker_figures.hpp"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "runtime/view_change_clock.hpp"

namespace elastic::runtime {
namespace {

rendezvous::View view_of(std::uint64_t generation) {
  rendezvous::View view;
  view.generation = generation;
  return view;
}

TEST(WorkerFigures, HaveTheTimesOfStepsAndTheBytesOfLinks) {
  using std::chrono::milliseconds;
  StepTimes steps;
  steps.steps = 7;
  steps.sum = {milliseconds(1000), milliseconds(2000), milliseconds(3000), milliseconds(4000)};
  TrainingFigures training;
  training.gradient_bytes = 80;
  training.encoded_bytes = 20;
  training.ramp_gamma = 1.5;
  training.ramp_target = std::numeric_limits<double>::infinity();
  const auto figures =
      worker_figures(milliseconds(500), steps, {}, {.shm = 10, .tcp = 20}, training);
  rendezvous::WorkerFigures expected;
  expected.at_s = 0.5;
  expected.steps = 7;
  expected.data_s = 1;
  expected.compute_s = 2;
  expected.communication_s = 3;
  expected.view_change_s = 4;
  expected.shm_bytes = 10;
  expected.tcp_bytes = 20;
  expected.gradient_bytes = 80;
  expected.encoded_bytes = 20;
  expected.ramp_gamma = 1.5;
  expected.ramp_target = 0;  // JSON has no number for it
  EXPECT_EQ(figures, expected);
}

TEST(WorkerFigures, HaveTheViewChangesAfterWhichAnOperationWasCompleted) {
  ViewChangeClock clock;
  clock.decide(view_of(1));
  clock.install(1);
  clock.resume();
  for (std::uint64_t generation = 2; generation <= 7; ++generation) {
    clock.notice(generation - 1);
    clock.decide(view_of(generation));
    clock.install(generation);
    if (generation != 5) clock.resume();
  }
  clock.resume();
  const auto figures = worker_figures({}, {}, clock.resumed(), {}, {});
  ASSERT_EQ(figures.changes.size(), 4U) << "the first view is no change, and the fifth had no end";
  EXPECT_EQ(figures.changes[0].generation, 3U);
  EXPECT_EQ(figures.changes[1].generation, 4U);
  EXPECT_EQ(figures.changes[2].generation, 6U);
  EXPECT_EQ(figures.changes[3].generation, 7U);
  for (const auto& change : figures.changes) EXPECT_GE(change.seconds, 0);
}

}  // namespace
}  // namespace elastic::runtime
