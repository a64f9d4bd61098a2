#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <elastic/learning_rate.hpp>
#include <elastic/state.hpp>
#include <elastic/types.hpp>

#include "examples/digits/network.hpp"

namespace digits {

/// The sums of a step over the samples of its batch, in host memory.
struct StepSums {
  /// `samples`: in the training set.
  explicit StepSums(std::size_t samples) : used(samples) {}

  /// Gradients first, in the order of Parameters.
  std::vector<elastic::TensorView> tensors();

  Parameters gradient;
  float loss = 0;
  std::vector<float> used;  ///< 1 for each training sample in the sum
};

/// Sums in the memory of a device, in the order of StepSums::tensors, and the stream that makes
/// them.
struct DeviceSums {
  std::vector<elastic::TensorView> tensors;
  elastic::CudaStream stream;
};

/// The network that is trained, with its optimizer, and where both compute: on the host, or on a
/// device, whose memory they lie in then. Belongs to the thread that trains.
class Model {
 public:
  virtual ~Model() = default;

  /// Adds the sums over training samples, by index. On a device they stay there; on the host, and
  /// wherever `collect` is called, they go to the StepSums.
  virtual void add_gradients(std::span<const std::size_t> samples, StepSums& sums) = 0;
  /// Those that stay on a device; nothing where there is none.
  virtual std::optional<DeviceSums> device_sums() { return std::nullopt; }
  /// Moves them to `sums`: adds them there, and begins at zero again.
  virtual void collect(StepSums&) {}
  /// Begins at zero: forgets those of a step that failed.
  virtual void begin_step() {}

  /// A step of stochastic gradient descent: see elastic::MomentumSgd::step.
  virtual void update(const Parameters& gradient_sum, double batch, const elastic::Rate& rate) = 0;

  virtual Parameters weights() const = 0;
  /// Adds what a joiner has to receive. It must stay where it is as long as `state` lives.
  virtual void add_to(elastic::State& state) = 0;
};

struct ModelOptions {
  std::uint64_t seed = 1;  ///< of the first weights
  double momentum = 0.9;
};

}  // namespace digits
