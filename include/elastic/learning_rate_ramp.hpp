#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "elastic/detail/export.hpp"

namespace elastic {

/// Factor `gamma` on the learning rate that follows the global batch as workers come and go.
///
/// The target is `batch_now / batch_reference`. Growth is taken linearly over several optimizer
/// steps, because momentum that was gathered at a small batch does not suit a large rate at once.
/// Where the target changes within a ramp and is still above gamma, the ramp goes on to it at the
/// same slope: neither a loss nor a join makes gamma grow faster. Shrinking is immediate: a rate
/// that comes down slowly is too large for the small batch meanwhile, and training diverges.
///
/// The linear form is that of Lin et al., "Dynamic Mini-batch SGD for Elastic Distributed Training"
/// (2019). The default length, the kept slope and the immediate shrinking are elastic's own.
///
/// Use it as `u = mu*u + g; w = w - gamma*eta*u`, where `eta` is the base rate for the reference
/// batch. Make `eta` a function of the samples seen, not of the steps taken: steps stop meaning the
/// same amount of training when the batch changes. Optimizers that normalise the gradient (Adam and
/// its like) take `sqrt(gamma)`.
///
/// LearningRate has one in it; by itself it is for trainers that bring schedule and optimizer
/// along.
///
/// The ramp starts at 1, so a job whose first batch exceeds the reference begins with a warm-up.
///
/// Add it to the `State`: a joiner continues any ramp in progress with the members' bits, and with
/// their reference and length, whatever its own options said.
///
/// Thread safety: none; belongs to the thread that trains.
class ELASTIC_API LearningRateRamp {
 public:
  /// The parameters of a ramp.
  struct Options {
    double batch_reference = 0;  ///< samples per step for which the base rate was chosen; > 0
    /// Optimizer steps of a ramp that does not go on from another, >= 1. Default: the greater of
    /// 8 * target / present gamma and 3 / (1 - momentum), rounded up.
    std::optional<std::uint64_t> ramp_steps = std::nullopt;
    /// The optimizer's mu (AdamW: beta1), 0 or more and below 1: the momentum sums some
    /// 1 / (1 - mu) gradients, and after three times as many those of the small batch are gone.
    double momentum = 0.9;
  };

  /// Everything that decides what `step` returns from here on.
  struct Record {
    double batch_reference = 0;      ///< Options::batch_reference
    double gamma = 1;                ///< of the latest step
    double gamma_before = 1;         ///< of the step before it
    double gamma_start = 1;          ///< where the present ramp began
    double gamma_target = 1;         ///< where it ends
    std::uint64_t taken = 0;         ///< steps taken of the present ramp
    std::uint64_t length = 0;        ///< steps of the present ramp; 0: none in progress
    std::uint64_t ramp_steps = 0;    ///< Options::ramp_steps, 0 where it was left to the default
    double slope = 0;                ///< of the present ramp, per step
    std::uint64_t least_steps = 30;  ///< of a ramp whose length was left to the default

    /// \returns whether all fields are equal.
    bool operator==(const Record&) const = default;
  };

  /// Begins at gamma 1.
  /// \throws Error kInvalidArgument unless batch_reference is finite and positive, ramp_steps, if
  ///   given, is at least 1, and momentum is in its range.
  explicit LearningRateRamp(const Options& options);

  /// Call once per optimizer step, before the update, with the global batch in samples that the
  /// rate should suit: contributing workers times the samples of each. Give the full batch also in
  /// the short step at an epoch's end (dividing the summed gradient by it, so that each sample
  /// keeps its weight); otherwise every epoch would begin with a ramp.
  /// \returns gamma for this step.
  /// \throws Error kInvalidArgument, changing nothing, unless `batch_now` is finite and positive.
  double step(double batch_now);

  /// \returns the factor of the latest step; 1 before the first.
  double gamma() const noexcept { return record_.gamma; }

  /// For the velocity form (MXNet, Keras), where the rate is inside:
  ///
  ///     v = mu * momentum_scale() * v + gamma*eta*g; w = w - v
  ///
  /// It takes the same steps as the form above while eta is constant. Under a schedule the factor
  /// is the quotient of the whole rates: momentum_scale() * eta now / eta before.
  /// \returns gamma of the latest step over gamma of the step before.
  double momentum_scale() const noexcept { return record_.gamma / record_.gamma_before; }

  /// \returns the record, for `restore`.
  const Record& get() const noexcept { return record_; }

  /// Continues from `record` with the same bits as the ramp it came from.
  /// \throws Error kInvalidArgument, changing nothing, if no ramp can have such a record.
  void restore(const Record& record);

  /// \returns the record as bytes, for State.
  std::vector<std::byte> save() const;
  /// Reverse of `save`.
  /// \throws Error kInvalidArgument, changing nothing, on bytes that are no record.
  void load(std::span<const std::byte> bytes);

 private:
  void begin(double target);

  Record record_;
};

}  // namespace elastic
