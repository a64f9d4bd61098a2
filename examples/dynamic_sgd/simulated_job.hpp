#pragma once

#include <functional>

#include "examples/dynamic_sgd/learner.hpp"
#include "examples/dynamic_sgd/plan.hpp"

namespace dynamic_sgd {

/// Trains with all of the plan's workers in this process: each has a Sampler of its own, and their
/// sums are added up in rank order. Replicas would have the same bits, so there is one Learner.
void train_simulated(const Plan& plan, Learner& learner,
                     const std::function<void(const StepInfo&)>& on_step);

}  // namespace dynamic_sgd
