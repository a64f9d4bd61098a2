#include "examples/dynamic_sgd/held_out.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace dynamic_sgd {
namespace {

/// out = weights * in + biases for `count` samples, each row of `in` and `out` having one value of
/// all of them. Each sample's sum is made in the order in which digits::Network makes it.
void affine(std::span<const float> weights, std::span<const float> biases,
            std::span<const float> in, std::span<float> out, std::size_t count) {
  const std::size_t inputs = in.size() / count;
  for (std::size_t row = 0; row < biases.size(); ++row) {
    float* const sums = out.data() + row * count;
    std::fill_n(sums, count, biases[row]);
    for (std::size_t column = 0; column < inputs; ++column) {
      const float weight = weights[row * inputs + column];
      const float* const values = in.data() + column * count;
      for (std::size_t sample = 0; sample < count; ++sample)
        sums[sample] += weight * values[sample];
    }
  }
}

}  // namespace

HeldOut::HeldOut(std::span<const digits::Sample> samples)
    : count_(samples.size()),
      pixels_(digits::kPixels * count_),
      hidden_(digits::kHidden * count_),
      outputs_(digits::kOutputs * count_) {
  for (std::size_t sample = 0; sample < count_; ++sample) {
    for (std::size_t pixel = 0; pixel < digits::kPixels; ++pixel) {
      pixels_[pixel * count_ + sample] = samples[sample].pixels[pixel];
    }
    labels_.push_back(samples[sample].label);
  }
}

Evaluation HeldOut::evaluate(const digits::Parameters& weights) {
  affine(weights.hidden_weights(), weights.hidden_biases(), pixels_, hidden_, count_);
  for (float& value : hidden_) value = std::max(value, 0.0F);
  affine(weights.output_weights(), weights.output_biases(), hidden_, outputs_, count_);

  double loss = 0;
  std::size_t right = 0;
  for (std::size_t sample = 0; sample < count_; ++sample) {
    std::array<float, digits::kOutputs> outputs{};
    for (std::size_t at = 0; at < outputs.size(); ++at)
      outputs[at] = outputs_[at * count_ + sample];
    const auto greatest = std::max_element(outputs.begin(), outputs.end());
    float sum = 0;
    for (const float output : outputs) sum += std::exp(output - *greatest);
    loss += double{std::log(sum) + *greatest - outputs[static_cast<std::size_t>(labels_[sample])]};
    if (greatest - outputs.begin() == labels_[sample]) ++right;
  }
  const auto count = static_cast<double>(count_);
  return {loss / count, static_cast<double>(right) / count};
}

}  // namespace dynamic_sgd
