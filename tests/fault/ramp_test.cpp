// A worker dies while the learning rate is being raised.
#include <bit>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <elastic/learning_rate.hpp>
#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/fault_job.hpp"
#include "fault/programs/learning_rate_options.hpp"
#include "fault/step_checks.hpp"

namespace elastic::testing {
namespace {

/// The bits of a rate, in the format of fault_worker.
std::string bits(double rate) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(std::bit_cast<std::uint64_t>(rate)));
  return text;
}

/// The rate of each step follows from the contributors of all steps up to it.
void expect_rates(const std::vector<Step>& steps, ResizePolicy policy) {
  LearningRate learning_rate(fault::learning_rate_options(policy));
  for (const Step& step : steps) {
    const double batch = fault::kBatchPerWorker * static_cast<double>(step.contributors);
    const double rate = learning_rate.step(batch, batch).value();
    EXPECT_EQ(step.state.substr(0, step.state.find('/')), bits(rate)) << "step " << step.index;
  }
}

struct Tested {
  std::string transport;
  std::string policy;
};

class DeathInARamp : public ::testing::TestWithParam<Tested> {};

TEST_P(DeathInARamp, SameRateAndSameBitsOnAllRanks) {
  const std::uint64_t seed = first_seed();
  std::mt19937_64 random(seed);
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  for (int i = 0; i < runs(4) && !HasFailure(); ++i) {
    FaultJob job({.np = 4,
                  .transport = GetParam().transport,
                  .worker_environment = {"ELASTIC_RESIZE_POLICY=" + GetParam().policy}});
    // The ramp to 4 takes 32 steps.
    const auto fatal_step = 5 + random() % 20;
    const auto victim = random() % 4;
    std::vector<std::string> arguments{"kind=train", "until=" + job.end_file(), "pause_us=500"};
    for (std::size_t slot = 0; slot < 4; ++slot) {
      std::vector<std::string> with = arguments;
      if (slot == victim) {
        with.push_back("die=" + std::to_string(fatal_step) + ":" + std::to_string(random() % 200));
      }
      job.start(with);
    }
    ASSERT_EQ(job.worker(victim).wait(kLong), 128 + SIGKILL) << job.text();
    const auto survivors = job.others({victim});
    // A worker joins in the middle of the ramp that follows.
    ASSERT_TRUE(FaultJob::await_steps(survivors, 5)) << job.text();
    FaultWorker& joiner = job.start(arguments);
    ASSERT_TRUE(FaultJob::await_line(joiner, "entered")) << job.text();
    ASSERT_TRUE(FaultJob::await_steps(job.others({victim}), 40)) << job.text();
    finish(job, job.others({victim}));
    expect_rates(survivors.front()->log().steps(), *find_named(kResizePolicies, GetParam().policy));
  }
}

INSTANTIATE_TEST_SUITE_P(Over, DeathInARamp,
                         ::testing::Values(Tested{"shm", "ramp"}, Tested{"tcp", "ramp"},
                                           Tested{"tcp", "none"}),
                         [](const auto& tested) {
                           return tested.param.transport + "_" + tested.param.policy;
                         });

}  // namespace
}  // namespace elastic::testing
