#include "examples/digits/cuda/kernels.hpp"
#include "examples/digits/network.hpp"

namespace digits::cuda {
namespace {

constexpr unsigned kThreads = 128;

constexpr unsigned blocks_for(unsigned threads) {
  return (threads + kThreads - 1) / kThreads;
}

__device__ unsigned thread_number() {
  return blockIdx.x * blockDim.x + threadIdx.x;
}

/// bias + weights * in
__device__ float affine(float bias, const float* weights, const float* in, unsigned count) {
  float sum = bias;
  for (unsigned at = 0; at < count; ++at) sum += weights[at] * in[at];
  return sum;
}

/// Makes the gradient of the cross entropy of outputs; returns the cross entropy.
__device__ float softmax(float* outputs, int label) {
  float greatest = outputs[0];
  for (unsigned at = 1; at < kOutputs; ++at) {
    if (greatest < outputs[at]) greatest = outputs[at];
  }
  const float target = outputs[label];
  float sum = 0;
  for (unsigned at = 0; at < kOutputs; ++at) {
    outputs[at] = expf(outputs[at] - greatest);
    sum += outputs[at];
  }
  for (unsigned at = 0; at < kOutputs; ++at) outputs[at] /= sum;
  outputs[label] -= 1;
  return logf(sum) + greatest - target;
}

/// A block for each sample, with a thread for each hidden unit.
__global__ void layers(ParameterPointers<const float> weights, Batch batch, Activations made) {
  __shared__ float hidden[kHidden];
  __shared__ float outputs[kOutputs];  // then their gradient
  const Sample& sample = batch.training[batch.indices[blockIdx.x]];
  const unsigned unit = threadIdx.x;

  const float sum = affine(weights.hidden_biases[unit], weights.hidden_weights + unit * kPixels,
                           &sample.pixels[0], kPixels);
  hidden[unit] = sum < 0 ? 0 : sum;
  __syncthreads();
  if (unit < kOutputs) {
    outputs[unit] = affine(weights.output_biases[unit], weights.output_weights + unit * kHidden,
                           hidden, kHidden);
  }
  __syncthreads();
  if (unit == 0) made.loss[blockIdx.x] = softmax(outputs, sample.label);
  __syncthreads();

  float gradient = 0;
  for (unsigned output = 0; output < kOutputs; ++output) {
    gradient += outputs[output] * weights.output_weights[output * kHidden + unit];
  }
  if (hidden[unit] <= 0) gradient = 0;
  made.hidden[blockIdx.x * kHidden + unit] = hidden[unit];
  made.hidden_gradient[blockIdx.x * kHidden + unit] = gradient;
  if (unit < kOutputs) made.output_gradient[blockIdx.x * kOutputs + unit] = outputs[unit];
}

// One thread for each element of the sums, which goes through the samples in their order.

__global__ void sum_hidden_layer(Batch batch, Activations made, Sums sums) {
  const unsigned unit = blockIdx.x;
  const unsigned pixel = threadIdx.x;
  float* const element = &sums.gradient.hidden_weights[unit * kPixels + pixel];
  float sum = *element;
  for (unsigned at = 0; at < batch.count; ++at) {
    const Sample& sample = batch.training[batch.indices[at]];
    sum += made.hidden_gradient[at * kHidden + unit] * sample.pixels[pixel];
  }
  *element = sum;
}

__global__ void sum_output_layer(Batch batch, Activations made, Sums sums) {
  const unsigned output = blockIdx.x;
  const unsigned unit = threadIdx.x;
  float* const element = &sums.gradient.output_weights[output * kHidden + unit];
  float sum = *element;
  for (unsigned at = 0; at < batch.count; ++at) {
    sum += made.output_gradient[at * kOutputs + output] * made.hidden[at * kHidden + unit];
  }
  *element = sum;
}

/// Column `column` of `rows` x `columns`, added to `element`.
__device__ void add_column(float& element, const float* values, unsigned column, unsigned columns,
                           unsigned rows) {
  float sum = element;
  for (unsigned row = 0; row < rows; ++row) sum += values[row * columns + column];
  element = sum;
}

/// Biases, loss, and which samples were used.
__global__ void sum_the_rest(Batch batch, Activations made, Sums sums) {
  const unsigned at = thread_number();
  if (at < kHidden) {
    add_column(sums.gradient.hidden_biases[at], made.hidden_gradient, at, kHidden, batch.count);
  }
  if (at < kOutputs) {
    add_column(sums.gradient.output_biases[at], made.output_gradient, at, kOutputs, batch.count);
  }
  if (at == 0) add_column(*sums.loss, made.loss, 0, 1, batch.count);
  if (at < batch.count) sums.used[batch.indices[at]] += 1;  // no sample is twice in a batch
}

__global__ void update(float* weights, float* momentum, const float* gradient, unsigned count,
                       UpdateFactors by) {
  const unsigned at = thread_number();
  if (at >= count) return;
  const float before = by.kept == 0 ? 0 : by.kept * momentum[at];  // 0 * NaN is no reset
  momentum[at] = before + by.share * gradient[at];
  weights[at] -= by.rate * momentum[at];
}

}  // namespace

cudaError_t launch_layers(const ParameterPointers<const float>& weights, const Batch& batch,
                          const Activations& made, cudaStream_t stream) {
  layers<<<batch.count, kHidden, 0, stream>>>(weights, batch, made);
  return cudaGetLastError();
}

cudaError_t launch_sums(const Batch& batch, const Activations& made, const Sums& sums,
                        cudaStream_t stream) {
  sum_hidden_layer<<<kHidden, kPixels, 0, stream>>>(batch, made, sums);
  sum_output_layer<<<kOutputs, kHidden, 0, stream>>>(batch, made, sums);
  const unsigned rest = batch.count > kHidden ? batch.count : kHidden;
  sum_the_rest<<<blocks_for(rest), kThreads, 0, stream>>>(batch, made, sums);
  return cudaGetLastError();
}

cudaError_t launch_update(float* weights, float* momentum, const float* gradient, unsigned count,
                          const UpdateFactors& by, cudaStream_t stream) {
  update<<<blocks_for(count), kThreads, 0, stream>>>(weights, momentum, gradient, count, by);
  return cudaGetLastError();
}

}  // namespace digits::cuda
