#include "examples/dynamic_sgd/learner.hpp"

namespace dynamic_sgd {

void StepSums::add(const StepSums& other) {
  const auto values = gradient.values();
  for (std::size_t at = 0; at < values.size(); ++at) values[at] += other.gradient.values()[at];
  for (std::size_t at = 0; at < totals.size(); ++at) totals[at] += other.totals[at];
}

Learner::Learner(const LearnerOptions& options, std::span<const digits::Sample> training)
    : options_(options),
      training_(training),
      weights_(digits::initial_parameters(options.seed)),
      optimizer_({weights_.values()}, {.momentum = options.momentum}),
      learning_rate_({.schedule = elastic::Schedule::constant(options.rate),
                      .batch_reference = static_cast<double>(options.batch),
                      .policy = options.policy,
                      .momentum = options.momentum}) {}

void Learner::add_to(elastic::State& state) {
  state.add("weights", weights_.values());
  optimizer_.add_to(state, "optimizer");
  state.add("learning rate", learning_rate_);
  state.add("steps", steps_);
  state.add("samples", samples_);
}

StepSums Learner::sums(std::span<const std::size_t> share) {
  StepSums sums;
  for (const std::size_t index : share) {
    sums.totals[0] += 1;
    sums.totals[1] += network_.add_gradient(weights_, training_[index], sums.gradient);
  }
  return sums;
}

StepInfo Learner::step(const StepSums& sums, std::size_t workers) {
  // The full batch in an epoch's short last step, too: see LearningRate::step.
  const auto batch = static_cast<double>(workers * options_.batch);
  const auto samples = double{sums.totals[0]};
  const elastic::Rate rate = learning_rate_.step(batch, samples);
  optimizer_.step({{sums.gradient.values()}}, batch, rate);
  ++steps_;
  samples_ += static_cast<std::int64_t>(samples);
  return {steps_,     workers,      samples_,
          rate.gamma, rate.value(), samples > 0 ? double{sums.totals[1]} / samples : 0};
}

}  // namespace dynamic_sgd
