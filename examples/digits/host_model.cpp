#include "examples/digits/host_model.hpp"

#include <elastic/diagnostics.hpp>

namespace digits {

std::vector<elastic::TensorView> StepSums::tensors() {
  std::vector<elastic::TensorView> all;
  for (std::size_t at = 0; at < Parameters::kTensors; ++at) {
    all.push_back(elastic::view(gradient.tensor(at)));
  }
  all.push_back(elastic::view(std::span(&loss, 1)));
  all.push_back(elastic::view(std::span(used)));
  return all;
}

HostModel::HostModel(const ModelOptions& options, std::span<const Sample> training)
    : training_(training),
      weights_(initial_parameters(options.seed)),
      optimizer_({weights_.values()}, {.momentum = options.momentum}) {}

void HostModel::add_gradients(std::span<const std::size_t> samples, StepSums& sums) {
  for (const Sample* sample : load(samples)) {
    sums.loss += network_.add_gradient(weights_, *sample, sums.gradient);
  }
  for (const std::size_t index : samples) sums.used[index] += 1;
}

std::vector<const Sample*> HostModel::load(std::span<const std::size_t> indices) const {
  const auto loading = elastic::loading_data();
  std::vector<const Sample*> samples;
  for (const std::size_t index : indices) samples.push_back(&training_[index]);
  return samples;
}

void HostModel::update(const Parameters& gradient_sum, double batch, const elastic::Rate& rate) {
  optimizer_.step({{gradient_sum.values()}}, batch, rate);
}

void HostModel::add_to(elastic::State& state) {
  state.add("weights", weights_.values());
  optimizer_.add_to(state, "optimizer");
}

}  // namespace digits
