#include "examples/digits/network.hpp"

#include <algorithm>
#include <cmath>

#include "examples/digits/random.hpp"

namespace digits {
namespace {

constexpr std::array<std::size_t, Parameters::kTensors + 1> kOffsets = [] {
  const std::array<std::size_t, Parameters::kTensors> sizes = {kHidden * kPixels, kHidden,
                                                               kOutputs * kHidden, kOutputs};
  std::array<std::size_t, Parameters::kTensors + 1> offsets{};
  for (std::size_t at = 0; at < sizes.size(); ++at) offsets[at + 1] = offsets[at] + sizes[at];
  return offsets;
}();

/// Uniform with the variance that suits rectifiers (He 2015).
void fill(std::span<float> weights, std::size_t inputs, Random& random) {
  const float bound = std::sqrt(6.0F / static_cast<float>(inputs));
  for (float& weight : weights) weight = bound * random.symmetric();
}

/// out = weights * in + biases
void affine(std::span<const float> weights, std::span<const float> biases,
            std::span<const float> in, std::span<float> out) {
  for (std::size_t row = 0; row < out.size(); ++row) {
    const auto line = weights.subspan(row * in.size(), in.size());
    float sum = biases[row];
    for (std::size_t column = 0; column < in.size(); ++column) sum += line[column] * in[column];
    out[row] = sum;
  }
}

/// Adds the gradient of an affine map, given that of its result.
void add_affine_gradient(std::span<const float> result_gradient, std::span<const float> in,
                         std::span<float> weights, std::span<float> biases) {
  for (std::size_t row = 0; row < result_gradient.size(); ++row) {
    const auto line = weights.subspan(row * in.size(), in.size());
    for (std::size_t column = 0; column < in.size(); ++column) {
      line[column] += result_gradient[row] * in[column];
    }
    biases[row] += result_gradient[row];
  }
}

}  // namespace

Parameters::Parameters() : values_(kOffsets.back()) {}

std::span<float> Parameters::tensor(std::size_t index) {
  return values().subspan(kOffsets[index], kOffsets[index + 1] - kOffsets[index]);
}

std::span<const float> Parameters::tensor(std::size_t index) const {
  return values().subspan(kOffsets[index], kOffsets[index + 1] - kOffsets[index]);
}

Parameters initial_parameters(std::uint64_t seed) {
  Random random(seed);
  Parameters weights;
  fill(weights.hidden_weights(), kPixels, random);
  fill(weights.output_weights(), kHidden, random);
  return weights;
}

void Network::forward(const Parameters& weights, const Sample& sample) {
  affine(weights.hidden_weights(), weights.hidden_biases(), sample.pixels, hidden_);
  for (float& value : hidden_) value = std::max(value, 0.0F);
  affine(weights.output_weights(), weights.output_biases(), hidden_, outputs_);
}

float Network::softmax(int label) {
  const float greatest = *std::max_element(outputs_.begin(), outputs_.end());
  const float target = outputs_[static_cast<std::size_t>(label)];
  float sum = 0;
  for (float& value : outputs_) {
    value = std::exp(value - greatest);
    sum += value;
  }
  for (float& value : outputs_) value /= sum;
  return std::log(sum) + greatest - target;
}

float Network::add_gradient(const Parameters& weights, const Sample& sample, Parameters& gradient) {
  forward(weights, sample);
  const float cross_entropy = softmax(sample.label);
  std::array<float, kOutputs> output_gradient = outputs_;
  output_gradient[static_cast<std::size_t>(sample.label)] -= 1;

  std::array<float, kHidden> hidden_gradient{};
  for (std::size_t output = 0; output < kOutputs; ++output) {
    const auto line = weights.output_weights().subspan(output * kHidden, kHidden);
    for (std::size_t unit = 0; unit < kHidden; ++unit) {
      hidden_gradient[unit] += output_gradient[output] * line[unit];
    }
  }
  for (std::size_t unit = 0; unit < kHidden; ++unit) {
    if (hidden_[unit] <= 0) hidden_gradient[unit] = 0;
  }
  add_affine_gradient(output_gradient, hidden_, gradient.output_weights(),
                      gradient.output_biases());
  add_affine_gradient(hidden_gradient, sample.pixels, gradient.hidden_weights(),
                      gradient.hidden_biases());
  return cross_entropy;
}

float Network::loss(const Parameters& weights, const Sample& sample) {
  forward(weights, sample);
  return softmax(sample.label);
}

int Network::classify(const Parameters& weights, const Sample& sample) {
  forward(weights, sample);
  const auto best = std::max_element(outputs_.begin(), outputs_.end());
  return static_cast<int>(best - outputs_.begin());
}

double accuracy(const Parameters& weights, std::span<const Sample> samples) {
  Network network;
  std::size_t right = 0;
  for (const Sample& sample : samples) {
    if (network.classify(weights, sample) == sample.label) ++right;
  }
  return static_cast<double>(right) / static_cast<double>(samples.size());
}

}  // namespace digits
