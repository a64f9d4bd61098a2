#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "elastic/detail/export.hpp"

namespace elastic {

/// The tensors of a gradient, in the order of the parameters. A single tensor is `{{values}}`.
using Gradient = std::span<const std::span<const float>>;

/// How noisy the gradient is, after Johnson et al., "AdaScale SGD" (2020), estimated from how much
/// the gradients of the workers of one step differ. LearningRate has one for
/// ScalingRule::kAdaScale.
///
/// Two unknowns are estimated in each step: the squared norm of the true gradient, and the variance
/// of the gradient of one sample. Their moving averages belong to no batch and no number of
/// workers, so they hold through a resize.
///
/// Thread safety: none; belongs to the thread that trains.
class ELASTIC_API GradientNoise {
 public:
  /// The values that a worker adds to the group that it sums: samples, 1 if there are any, and the
  /// squared norm of its gradient's sum divided by samples. In the order of the enumerators.
  using Moments = std::array<double, 3>;
  /// The places of the values in Moments.
  enum MomentIndex : std::size_t {
    kSamples,  ///< samples of the worker
    kWorkers,  ///< 1 if it has any, otherwise 0
    kSquares,  ///< squared norm of its gradient's sum, divided by its samples
  };

  /// Computes the moments of one worker: `gradient_sum` over its `samples` samples, which may be 0
  /// at an epoch's tail.
  /// \returns the moments.
  /// \throws Error kInvalidArgument unless `samples` is finite and at least 0.
  static Moments moments(Gradient gradient_sum, double samples);

  /// Takes in one step: the sums over all workers of their moments and of their gradients. A step
  /// in which fewer than two workers had samples says nothing about noise, and changes nothing;
  /// nor does one with an infinity or NaN in its gradient.
  /// Averages go over 1000 steps of `batch_reference` samples; the first of them are plain means.
  /// \throws Error kInvalidArgument, changing nothing, if a sum is negative or `batch_reference` is
  ///   not positive.
  void observe(const Moments& total, Gradient gradient_sum, double batch_reference);

  /// AdaScale's gain of a batch of `scale` times `batch_reference` samples: how many steps of the
  /// reference batch it replaces.
  /// \returns the gain, between 1 (no noise) and `scale` (only noise); before the first estimate
  ///   the lesser of the two.
  double gain(double scale, double batch_reference) const;

  /// \returns the variance of the gradient of one sample.
  double variance() const noexcept { return variance_; }
  /// \returns the squared norm of the true gradient.
  double square() const noexcept { return square_; }
  /// \returns the number of steps that are in both averages.
  std::uint64_t estimates() const noexcept { return estimates_; }

  /// \returns the averages as bytes, for State.
  std::vector<std::byte> save() const;
  /// Reverse of `save`.
  /// \throws Error kInvalidArgument, changing nothing, on other bytes.
  void load(std::span<const std::byte> bytes);

 private:
  double variance_ = 0;
  double square_ = 0;
  std::uint64_t estimates_ = 0;
};

}  // namespace elastic
