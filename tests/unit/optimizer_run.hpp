#pragma once

#include <cmath>
#include <cstddef>
#include <rapidcheck.h>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elastic/learning_rate.hpp"
#include "elastic/state.hpp"
#include "tests/unit/allocations.hpp"
#include "training/state_image.hpp"

namespace elastic::testing {

/// A training of a few weights in two tensors, with gradients that depend on the weights.
template <typename Optimizer>
struct OptimizerRun {
  static constexpr std::size_t kFirst = 5;
  static constexpr std::size_t kAll = 8;
  static constexpr double kReference = 4;

  OptimizerRun(const typename Optimizer::Options& options, ResizePolicy policy)
      : optimizer({std::span(weights).first(kFirst), std::span(weights).subspan(kFirst)}, options),
        learning_rate({.schedule = Schedule::cosine(0.3, 4000, 0.05),
                       .batch_reference = kReference,
                       .policy = policy}) {
    for (std::size_t at = 0; at < kAll; ++at) weights[at] = 0.3F * static_cast<float>(at) - 1;
    state.add("weights", weights);
    state.add("learning rate", learning_rate);
    state.add("steps", steps);
    optimizer.add_to(state, "optimizer");
  }

  /// Makes a step with the global batch of the present workers.
  void step(double batch) {
    for (std::size_t at = 0; at < kAll; ++at) {
      const double noise = std::sin(1.7 * steps + 0.9 * static_cast<double>(at));
      sum[at] = static_cast<float>(batch) * (0.2F * weights[at] + static_cast<float>(noise));
    }
    ++steps;
    rate = learning_rate.step(batch, batch);
    optimizer.step(gradient, batch, rate);
  }

  std::vector<float> weights = std::vector<float>(kAll);
  std::vector<float> sum = std::vector<float>(kAll);
  std::vector<std::span<const float>> gradient{std::span(sum).first(kFirst),
                                               std::span(sum).subspan(kFirst)};
  Optimizer optimizer;
  LearningRate learning_rate;
  Rate rate;
  int steps = 0;
  State state;
};

inline ResizePolicy any_policy() {
  return kResizePolicies[*rc::gen::inRange<std::size_t>(0, kResizePolicies.size())].value;
}

/// Batches of a run whose workers come and go.
inline std::vector<double> any_batches() {
  std::vector<double> batches;
  const int changes = *rc::gen::inRange(1, 8);
  for (int change = 0; change < changes; ++change) {
    const int steps = *rc::gen::inRange(1, 12);
    batches.insert(batches.end(), static_cast<std::size_t>(steps), 4.0 * *rc::gen::inRange(1, 12));
  }
  return batches;
}

/// A joiner that receives the member's state somewhere in the run.
template <typename Optimizer>
void expect_same_bits_after_a_join(const typename Optimizer::Options& options, ResizePolicy policy,
                                   const std::vector<double>& batches) {
  OptimizerRun<Optimizer> member(options, policy);
  OptimizerRun<Optimizer> joiner(options, policy);
  const auto joins = *rc::gen::inRange<std::size_t>(0, batches.size());
  for (std::size_t at = 0; at < batches.size(); ++at) {
    if (at == joins) {
      RC_ASSERT(training::restore(joiner.state, training::serialize(member.state)).ok());
    }
    member.step(batches[at]);
    if (at >= joins) {
      joiner.step(batches[at]);
      RC_ASSERT(training::hashes(joiner.state) == training::hashes(member.state));
    }
  }
}

/// A worker with the options `own` does not take over a state of `other`, says why, and stays as it
/// was.
template <typename Optimizer>
void expect_other_options_are_refused(const typename Optimizer::Options& own,
                                      const typename Optimizer::Options& other,
                                      const std::string& theirs, const std::string& ours) {
  OptimizerRun<Optimizer> member(other, ResizePolicy::kRamp);
  OptimizerRun<Optimizer> joiner(own, ResizePolicy::kRamp);
  member.step(4);
  const auto before = training::serialize(joiner.state);
  const auto restored = training::restore(joiner.state, training::serialize(member.state));
  ASSERT_FALSE(restored.ok());
  EXPECT_THAT(restored.status().message(),
              ::testing::AllOf(::testing::HasSubstr(theirs), ::testing::HasSubstr(ours)));
  EXPECT_EQ(training::serialize(joiner.state), before);
}

template <typename Optimizer>
std::size_t allocations_in_a_step(OptimizerRun<Optimizer>& run) {
  run.step(4);
  const std::size_t before = allocations();
  run.step(8);
  return allocations() - before;
}

}  // namespace elastic::testing
