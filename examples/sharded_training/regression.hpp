#pragma once

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

/// A linear regression of some outputs: weights and biases, and their gradients.
namespace regression {

using Tensor = std::vector<double>;

constexpr std::size_t kFeatures = 40;
constexpr std::size_t kOutputs = 7;
constexpr std::size_t kSamples = 600;

inline std::vector<Tensor> zeros() {
  return {Tensor(kFeatures * kOutputs), Tensor(kOutputs)};
}

/// The gradients over every `stride`-th sample from `first` on, as a share of the mean over all
/// samples: the shares of `stride` workers add up to the mean.
inline std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters, std::size_t first,
                                        std::size_t stride) {
  std::vector<Tensor> gradients = zeros();
  for (std::size_t sample = first; sample < kSamples; sample += stride) {
    Tensor input(kFeatures);
    for (std::size_t i = 0; i < kFeatures; ++i) {
      input[i] = std::sin(static_cast<double>((sample + 1) * (i + 3)) * 0.37);
    }
    for (std::size_t out = 0; out < kOutputs; ++out) {
      double error = parameters[1][out] - static_cast<double>(out);
      for (std::size_t i = 0; i < kFeatures; ++i) {
        error += input[i] * (parameters[0][i * kOutputs + out] - static_cast<double>(i % 5));
      }
      for (std::size_t i = 0; i < kFeatures; ++i) {
        gradients[0][i * kOutputs + out] += error * input[i] / kSamples;
      }
      gradients[1][out] += error / kSamples;
    }
  }
  return gradients;
}

constexpr double kRate = 0.05;
constexpr double kMomentum = 0.9;

/// Gives elements of the momentum and of the parameters their values after a step.
inline void update(double& momentum, double& parameter, double gradient) {
  momentum = kMomentum * momentum + gradient;
  parameter -= kRate * momentum;
}

/// The training by one process, with nothing sharded.
inline std::vector<Tensor> train_alone(int steps) {
  std::vector<Tensor> parameters = zeros();
  std::vector<Tensor> momentum = zeros();
  for (int step = 0; step < steps; ++step) {
    const std::vector<Tensor> gradients = gradients_of(parameters, 0, 1);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      for (std::size_t k = 0; k < parameters[i].size(); ++k) {
        update(momentum[i][k], parameters[i][k], gradients[i][k]);
      }
    }
  }
  return parameters;
}

inline void print(const std::vector<Tensor>& parameters) {
  for (const Tensor& tensor : parameters) {
    for (const double value : tensor) std::printf("parameter %.12g\n", value);
  }
}

}  // namespace regression
