#include "fault/step_checks.hpp"

#include <map>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/programs/digits.hpp"

namespace elastic::testing {

namespace {

auto content(const Step& step) {
  return std::tie(step.sums, step.contributors, step.generation, step.state);
}

std::string describe(const Step& step) {
  return step.sums + " of " + std::to_string(step.contributors) + " in generation " +
         std::to_string(step.generation) + ", state " + step.state;
}

/// The outcome of each step on the first worker that made it, and this worker's process.
using Agreed = std::map<std::uint64_t, std::pair<const Step*, pid_t>>;

void expect_agreement(Agreed& agreed, const FaultWorker& worker, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    const auto [first, fresh] = agreed.try_emplace(step.index, &step, worker.pid());
    if (fresh || content(*first->second.first) == content(step)) continue;
    ADD_FAILURE() << "step " << step.index << ": worker " << worker.pid() << " has "
                  << describe(step) << "; worker " << first->second.second << " has "
                  << describe(*first->second.first);
    return;
  }
}

}  // namespace

void expect_same_steps(const std::vector<FaultWorker*>& workers) {
  Agreed agreed;
  for (FaultWorker* worker : workers) {
    const std::vector<Step>& steps = worker->log().steps();
    EXPECT_FALSE(steps.empty()) << "worker " << worker->pid() << " made no step";
    for (std::size_t i = 0; i < steps.size(); ++i) {
      EXPECT_EQ(steps[i].index, steps.front().index + i) << "worker " << worker->pid();
    }
    expect_agreement(agreed, *worker, steps);
  }
}

void expect_same_steps_but_missed_ones(FaultWorker& away, const std::vector<FaultWorker*>& others) {
  Agreed agreed;
  for (FaultWorker* other : others) expect_agreement(agreed, *other, other->log().steps());
  const std::vector<Step>& steps = away.log().steps();
  std::vector<Step> kept;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool last_before_it_left =
        i + 1 < steps.size() && steps[i + 1].generation != steps[i].generation;
    if (!last_before_it_left) kept.push_back(steps[i]);
    if (i == 0) continue;
    EXPECT_GT(steps[i].index, steps[i - 1].index) << "worker " << away.pid() << " went back";
    if (steps[i].generation != steps[i - 1].generation) continue;
    EXPECT_EQ(steps[i].index, steps[i - 1].index + 1) << "worker " << away.pid();
  }
  expect_agreement(agreed, away, kept);
}

void expect_one_view_per_generation(const std::vector<FaultWorker*>& workers) {
  std::map<std::uint64_t, std::string> sums;
  for (FaultWorker* worker : workers) {
    std::uint64_t newest = 0;
    for (const Step& step : worker->log().steps()) {
      EXPECT_GE(step.generation, newest) << "step " << step.index;
      newest = step.generation;
      EXPECT_EQ(sums.try_emplace(step.generation, step.sums).first->second, step.sums)
          << "two views with generation " << step.generation;
    }
  }
}

void expect_end(const std::vector<FaultWorker*>& workers) {
  for (FaultWorker* worker : workers) {
    const auto status = worker->wait(kLong);
    EXPECT_TRUE(status.has_value()) << "worker " << worker->pid() << " hangs";
    EXPECT_EQ(status.value_or(-1), 0) << "worker " << worker->pid() << "\n" << worker->log().text();
    EXPECT_EQ(worker->log().count("end"), 1U) << "worker " << worker->pid();
  }
}

void finish(FaultJob& job, const std::vector<FaultWorker*>& survivors) {
  job.ask_for_the_end();
  expect_end(survivors);
  expect_same_steps(survivors);
  if (::testing::Test::HasFailure()) ADD_FAILURE() << job.text();
}

std::string sum_of(const std::vector<int>& slots) {
  std::int64_t sum = 0;
  for (const int slot : slots) sum += fault::digit(slot);
  return std::to_string(sum);
}

std::uint64_t generation(FaultWorker& worker) {
  const std::vector<Step>& steps = worker.log().steps();
  return steps.empty() ? 0 : steps.back().generation;
}

}  // namespace elastic::testing
