#pragma once

#include <cstdint>
#include <cuda_runtime_api.h>

#include "examples/digits/dataset.hpp"

namespace digits::cuda {

/// A block of memory like that of Parameters, its tensors one after another.
template <typename T>
struct ParameterPointers {
  T* hidden_weights;  ///< [kHidden][kPixels]
  T* hidden_biases;
  T* output_weights;  ///< [kOutputs][kHidden]
  T* output_biases;
};

/// Training samples, and which of them are a batch.
struct Batch {
  const Sample* training;
  const std::uint32_t* indices;
  unsigned count;
};

/// The values of the layers for each sample of a batch.
struct Activations {
  float* hidden;           ///< [count][kHidden]
  float* hidden_gradient;  ///< [count][kHidden]: of the loss, by the input of the rectifiers
  float* output_gradient;  ///< [count][kOutputs]: of the loss, by the input of the softmax
  float* loss;             ///< [count]: cross entropy, in nats
};

/// Where the sums over a batch are added.
struct Sums {
  ParameterPointers<float> gradient;
  float* loss;
  float* used;  ///< for each training sample
};

/// The factors of a step, in single precision.
struct UpdateFactors {
  float share;  ///< the sum of gradients
  float kept;   ///< the momentum as it was; 0 forgets it
  float rate;
};

// All work is queued on a stream. Sums are made in a fixed order, that of digits::Network, by one
// thread each: equal inputs give equal bits on devices of one kind. Only exp and log round
// otherwise than on the host.

/// Forward and backward through the layers, for each sample by itself.
cudaError_t launch_layers(const ParameterPointers<const float>& weights, const Batch& batch,
                          const Activations& made, cudaStream_t stream);

/// Adds what the layers made of a batch, in its order, to the sums.
cudaError_t launch_sums(const Batch& batch, const Activations& made, const Sums& sums,
                        cudaStream_t stream);

/// momentum = kept * momentum + share * gradient; weights -= rate * momentum
cudaError_t launch_update(float* weights, float* momentum, const float* gradient, unsigned count,
                          const UpdateFactors& by, cudaStream_t stream);

}  // namespace digits::cuda
