#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "elastic/gradient_noise.hpp"

namespace elastic::training {

/// Elements of all tensors.
std::size_t count_elements(const std::vector<std::span<float>>& parameters);

/// Throws Error(kInvalidArgument), naming `optimizer`, unless the gradient's tensors are those of
/// the parameters, `batch` is positive, `rate` and `momentum_scale` are finite and at least 0, all
/// of them as floats too, and a step takes no more than all of the weights by `decay`, which is
/// decoupled.
void check_step(std::string_view optimizer, const std::vector<std::span<float>>& parameters,
                Gradient gradient_sum, double batch, double rate, double momentum_scale,
                double decay);

}  // namespace elastic::training
