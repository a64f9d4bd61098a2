#pragma once

/// \file
/// Parts of a trainer for workers that come and go: the distribution of samples, learning rates
/// that follow the global batch, optimizers, compression of gradients, and a check for NaN and Inf.

#include "elastic/finite_check.hpp"
#include "elastic/global_batch.hpp"
#include "elastic/gradient_compressor.hpp"
#include "elastic/gradient_noise.hpp"
#include "elastic/learning_rate.hpp"
#include "elastic/learning_rate_ramp.hpp"
#include "elastic/optimizers.hpp"
#include "elastic/sampler.hpp"
#include "elastic/schedule.hpp"
