#include "elastic/global_batch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <rapidcheck.h>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elastic/error.hpp"
#include "tests/slowness.hpp"
#include "tests/unit/model_job.hpp"

namespace elastic::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kVirtualWorkers = 5;
const GlobalBatch::Options kFixed{BatchPolicy::kFixedTotal, 10, kVirtualWorkers};
const GlobalBatch::Options kReproducible{BatchPolicy::kReproducible, 10, kVirtualWorkers};

/// A worker by itself: what it contributes is the sum.
Contributors alone(std::span<const TensorView> /*tensors*/, ReduceOp /*op*/) {
  return {std::make_shared<const std::vector<WorkerId>>(1, WorkerId{1}), 1};
}

Sampler sampler_alone(std::size_t size) {
  Sampler sampler(size, 1);
  const std::vector<WorkerId> members{1};
  sampler.set_members(members, 1);
  return sampler;
}

std::string refusal_of(const GlobalBatch::Options& options) {
  Sampler sampler(100, 1);
  try {
    const GlobalBatch batches(alone, sampler, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "none";
}

TEST(GlobalBatch, RefusesOptionsThatMakeNoSenseAndSaysWhatDoes) {
  EXPECT_THAT(refusal_of({}), HasSubstr("at least 1"));
  EXPECT_THAT(refusal_of({BatchPolicy::kFixedTotal, 8, 0}), HasSubstr("give 1 to 1048576"));
  EXPECT_THAT(refusal_of({BatchPolicy::kFixedTotal, 20, 8}),
              HasSubstr("a batch of 20 samples does not divide among 8 virtual workers; give a "
                        "batch of 16 or 24, or as many virtual workers as divide it: 1, 2, 4, 5, "
                        "10, 20"));
  EXPECT_THAT(refusal_of({BatchPolicy::kReproducible, 3, 8}), HasSubstr("give a batch of 8, or"));
  EXPECT_EQ(refusal_of({BatchPolicy::kReproducible, 24, 8}), "none");
  EXPECT_EQ(refusal_of({BatchPolicy::kPerWorker, 3, 8}), "none");
}

TEST(GlobalBatch, RefusesTensorsThatItCannotSum) {
  Sampler sampler = sampler_alone(100);
  std::vector<std::int64_t> whole(3);
  const std::vector<TensorView> tensors{view(std::span(whole))};
  const auto nothing = [](VirtualBatch&) {};
  EXPECT_THROW(GlobalBatch(alone, sampler, kReproducible).sum(tensors, nothing), Error);
  EXPECT_EQ(sampler.done_in_epoch(), 0U);
  GlobalBatch(alone, sampler, kFixed).sum(tensors, nothing);
  EXPECT_EQ(sampler.done_in_epoch(), 10U);

  std::vector<TensorView> elsewhere = tensors;
  elsewhere[0].device.kind = Device::Kind::kCuda;
  EXPECT_THROW(GlobalBatch(alone, sampler, kFixed).sum(elsewhere, nothing), Error);
  Sampler without_members(100, 1);
  EXPECT_THROW(GlobalBatch(alone, without_members, kFixed).sum(tensors, nothing), Error);
}

TEST(GlobalBatch, FollowsTheWorldPerWorkerAndGivesBackWhatTheLostDrew) {
  ModelJob job({BatchPolicy::kPerWorker, 4, 1}, 3);
  EXPECT_EQ(job.step(), 1U);
  EXPECT_EQ(job.worker(0).sampler().done_in_epoch(), 12U);
  job.step({{0, 2, false}});
  EXPECT_EQ(job.worker(0).sampler().done_in_epoch(), 20U);
  job.step({{0, 3, true}});
  EXPECT_EQ(job.worker(0).sampler().done_in_epoch(), 28U);
}

TEST(GlobalBatch, TellsWhatItSummed) {
  Sampler sampler = sampler_alone(25);
  GlobalBatch batches(alone, sampler, kFixed);
  float sum = 0;
  const std::vector<TensorView> tensors{view(std::span(&sum, 1))};
  const auto count = [&](VirtualBatch& part) { sum += static_cast<float>(part.samples.size()); };
  for (const std::size_t expected : std::initializer_list<std::size_t>{10, 10, 5, 10}) {
    const BatchSum told = batches.sum(tensors, count);
    EXPECT_EQ(told.samples, expected);
    EXPECT_EQ(told.full_batch, 10U);
    EXPECT_EQ(told.contributors.size(), 1U);
    EXPECT_EQ(sum, static_cast<float>(expected));
  }
}

TEST(GlobalBatch, ComputesTheLostVirtualWorkersInTheSameStep) {
  ModelJob job(kFixed, 3);
  EXPECT_EQ(job.step(), 1U);
  EXPECT_EQ(job.step({{0, 2, false}}), 2U);
  EXPECT_EQ(job.worker(0).sampler().done_in_epoch(), 20U);
  EXPECT_EQ(job.step({{0, 3, true}}), 1U);  // counted: nothing is missing
  EXPECT_EQ(job.step(), 2U);                // but now it is
  EXPECT_EQ(job.worker(0).sampler().done_in_epoch(), 37U);
  EXPECT_EQ(job.worker(0).used(), std::vector<float>(ModelWorker::kSamples, 1));
}

TEST(GlobalBatch, LeavesMembersIdleThatAreMoreThanVirtualWorkers) {
  ModelJob job(kFixed, kVirtualWorkers + 2);
  EXPECT_EQ(job.step(), 1U);
  EXPECT_EQ(job.worker(kVirtualWorkers + 1).sampler().done_in_epoch(), 10U);
}

TEST(GlobalBatch, GivesAJoinerThePolicyOfTheJob) {
  Sampler sampler(100, 1);
  GlobalBatch member(alone, sampler, kReproducible);
  GlobalBatch joiner(alone, sampler, {BatchPolicy::kPerWorker, 3, 1});
  joiner.load(member.save());
  EXPECT_EQ(joiner.options(), kReproducible);
  const auto saved = member.save();
  EXPECT_THROW(joiner.load(std::span(saved).first(saved.size() - 1)), Error);
  auto strange = saved;
  strange[0] = std::byte{3};
  EXPECT_THROW(joiner.load(strange), Error);
  strange = saved;
  strange[8] = std::byte{11};  // samples, among five
  EXPECT_THROW(joiner.load(strange), Error);
  EXPECT_EQ(joiner.options(), kReproducible);
}

TEST(GlobalBatch, LosesNoNanWhenItIsReproducible) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Sampler sampler = sampler_alone(100);
    GlobalBatch batches(alone, sampler, kReproducible);
    std::vector<float> ill(3);
    std::vector<float> well(2);
    const std::vector<TensorView> tensors{view(std::span(ill)), view(std::span(well))};
    batches.sum(tensors, [&](VirtualBatch& part) {
      if (part.virtual_worker == 3) ill[1] = bad;
      well[0] += 1;
    });
    for (const float value : ill) EXPECT_TRUE(std::isnan(value));
    EXPECT_EQ(well, (std::vector<float>{kVirtualWorkers, 0}));
  }
}

TEST(GlobalBatch, NoticesGradientsThatGrowWhenTheyAreComputedAgain) {
  Sampler sampler(100, 1);
  const std::vector<WorkerId> members{1, 2};
  sampler.set_members(members, 1);
  int calls = 0;
  // Worker 2 is counted in the magnitudes, with nothing, and then lost.
  const auto lose_the_other = [&](std::span<const TensorView>, ReduceOp) -> Contributors {
    std::vector<WorkerId> counted{1};
    if (calls++ == 0) counted.push_back(2);
    return {std::make_shared<const std::vector<WorkerId>>(counted), 1};
  };
  GlobalBatch batches(lose_the_other, sampler, kReproducible);
  float gradient = 0;
  const std::vector<TensorView> tensors{view(std::span(&gradient, 1))};
  const auto grow = [&](VirtualBatch&) { gradient = static_cast<float>(1 + calls); };
  EXPECT_THROW(batches.sum(tensors, grow), Error);
}

std::size_t below(std::size_t bound) {
  return *rc::gen::inRange<std::size_t>(0, bound);
}

/// Takes steps while workers join, leave, and die in any collective, but never all.
void train(ModelJob& job, std::size_t steps) {
  for (std::size_t step = 0; step < steps; ++step) {
    if (below(3) == 2) job.join(below(3));
    if (job.size() > 1 && below(5) == 4) job.drop(below(job.size()));
    std::vector<Loss> losses;
    const std::size_t survivor = below(job.size());
    for (std::size_t rank = 0; rank < job.size(); ++rank) {
      if (rank == survivor || below(4) != 3) continue;
      losses.push_back({below(4), job.worker(rank).id(), below(2) == 1});
    }
    job.step(losses);
    for (std::size_t rank = 0; rank < job.size(); ++rank) {
      RC_ASSERT(job.worker(rank).weights() == job.worker(0).weights());
      RC_ASSERT(job.worker(rank).used() == job.worker(0).used());
    }
    const auto& used = job.worker(0).used();
    RC_ASSERT(std::ranges::max(used) == 1.0F);
    RC_ASSERT(static_cast<std::size_t>(std::ranges::count(used, 1.0F)) ==
              job.worker(0).sampler().done_in_epoch());
  }
}

ModelWorker::Weights undisturbed(const GlobalBatch::Options& options, std::size_t steps) {
  ModelJob job(options, 1);
  for (std::size_t step = 0; step < steps; ++step) job.step();
  return job.worker(0).weights();
}

TEST(GlobalBatch, IsReproducibleInAnyHistory) {
  EXPECT_TRUE(rc::check("the weights have the bits of an undisturbed run", [] {
    const std::size_t steps = 1 + below(static_cast<std::size_t>(12 / kSlowness));
    ModelJob job(kReproducible, 1 + below(8));
    train(job, steps);
    RC_ASSERT(job.worker(0).weights() == undisturbed(kReproducible, steps));
  }));
}

TEST(GlobalBatch, TakesTheSameWayWithAFixedTotalUpToRounding) {
  EXPECT_TRUE(rc::check("the weights are those of an undisturbed run", [] {
    const std::size_t steps = 1 + below(static_cast<std::size_t>(12 / kSlowness));
    ModelJob job(kFixed, 1 + below(8));
    train(job, steps);
    const ModelWorker::Weights expected = undisturbed(kFixed, steps);
    for (std::size_t k = 0; k < expected.size(); ++k) {
      const double scale = std::ldexp(1.0, static_cast<int>(k) * 5 - 15);
      RC_ASSERT(std::abs(double{job.worker(0).weights()[k]} - double{expected[k]}) < 1e-5 * scale);
    }
  }));
}

}  // namespace
}  // namespace elastic::testing
