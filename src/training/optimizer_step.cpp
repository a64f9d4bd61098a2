#include "training/optimizer_step.hpp"

#include <string>

#include "elastic/error.hpp"
#include "training/arguments.hpp"

namespace elastic::training {

std::size_t count_elements(const std::vector<std::span<float>>& parameters) {
  std::size_t count = 0;
  for (const auto tensor : parameters) count += tensor.size();
  return count;
}

void check_step(std::string_view optimizer, const std::vector<std::span<float>>& parameters,
                Gradient gradient_sum, double batch, double rate, double momentum_scale,
                double decay) {
  const auto refuse = [&](const std::string& message) {
    throw Error(ErrorCode::kInvalidArgument, std::string(optimizer) + ": " + message);
  };
  if (gradient_sum.size() != parameters.size()) {
    refuse("the gradient has " + std::to_string(gradient_sum.size()) + " tensors, the parameters " +
           std::to_string(parameters.size()) + "; give one for each, in their order");
  }
  for (std::size_t at = 0; at < parameters.size(); ++at) {
    if (gradient_sum[at].size() == parameters[at].size()) continue;
    refuse("tensor " + std::to_string(at) + " of the gradient has " +
           std::to_string(gradient_sum[at].size()) + " elements, that of the parameters " +
           std::to_string(parameters[at].size()) + "; give them in the same order and sizes");
  }
  require(positive(batch) && positive_float(1 / batch), optimizer, "the batch", batch,
          "a positive number of samples");
  constexpr auto kAtLeastZero = "a finite number, at least 0, in single precision";
  require(not_negative_float(rate), optimizer, "the rate", rate, kAtLeastZero);
  require(not_negative_float(momentum_scale), optimizer, "momentum_scale", momentum_scale,
          kAtLeastZero);
  require(rate * decay <= 1, optimizer, "the rate times the decoupled weight decay", rate * decay,
          "at most 1: more would turn the signs of the weights");
}

}  // namespace elastic::training
