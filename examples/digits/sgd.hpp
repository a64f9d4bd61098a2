#pragma once

#include "examples/digits/network.hpp"

namespace digits {

/// One step of stochastic gradient descent with momentum, `u = mu*u + g; w = w - rate*u`, where g
/// is `gradient_sum / batch`. The rate stays outside of u, so that it may change from step to step.
void sgd_step(Parameters& weights, Parameters& momentum, const Parameters& gradient_sum,
              double batch, double mu, double rate);

/// Base learning rate after `samples` training samples: `initial`, a tenth of it in the last third
/// of `samples_in_all`. By samples and not by steps, whose number depends on how many workers there
/// are.
double base_rate(double initial, double samples, double samples_in_all);

}  // namespace digits
