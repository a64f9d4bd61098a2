#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "examples/digits/dataset.hpp"

namespace digits {

inline constexpr std::size_t kHidden = 64;
inline constexpr std::size_t kOutputs = kClasses;

/// The weights of the network, or anything of their shape: gradients, momentum. One block of memory
/// with a view of each of the four tensors.
class Parameters {
 public:
  Parameters();

  std::span<float> hidden_weights() { return tensor(0); }  // [kHidden][kPixels]
  std::span<float> hidden_biases() { return tensor(1); }
  std::span<float> output_weights() { return tensor(2); }  // [kOutputs][kHidden]
  std::span<float> output_biases() { return tensor(3); }
  std::span<const float> hidden_weights() const { return tensor(0); }
  std::span<const float> hidden_biases() const { return tensor(1); }
  std::span<const float> output_weights() const { return tensor(2); }
  std::span<const float> output_biases() const { return tensor(3); }

  std::span<float> values() { return values_; }
  std::span<const float> values() const { return values_; }

  static constexpr std::size_t kTensors = 4;
  std::span<float> tensor(std::size_t index);
  std::span<const float> tensor(std::size_t index) const;

 private:
  std::vector<float> values_;
};

/// Random weights, the same for the same seed on every worker; biases are zero.
Parameters initial_parameters(std::uint64_t seed);

/// A network of one hidden layer with rectifiers, 64-64-10, in single precision. Loops run in a
/// fixed order, so equal weights give equal bits.
class Network {
 public:
  /// Adds the gradient of the cross entropy of `sample` to `gradient`; returns the cross entropy
  /// (nats). Not divided by anything: the caller knows over how many samples it sums.
  float add_gradient(const Parameters& weights, const Sample& sample, Parameters& gradient);

  /// Cross entropy of `sample`, in nats.
  float loss(const Parameters& weights, const Sample& sample);

  /// The digit that the network sees.
  int classify(const Parameters& weights, const Sample& sample);

 private:
  void forward(const Parameters& weights, const Sample& sample);
  float softmax(int label);

  std::array<float, kHidden> hidden_{};
  std::array<float, kOutputs> outputs_{};  // after softmax(): probabilities
};

/// Share of `samples` that is classified rightly, from 0 to 1.
double accuracy(const Parameters& weights, std::span<const Sample> samples);

}  // namespace digits
