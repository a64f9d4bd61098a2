#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "elastic/detail/export.hpp"
#include "elastic/detail/named.hpp"
#include "elastic/gradient_noise.hpp"
#include "elastic/learning_rate_ramp.hpp"
#include "elastic/options.hpp"
#include "elastic/schedule.hpp"

namespace elastic {

/// The rate of one step of an optimizer, from LearningRate.
struct Rate {
  double base = 0;            ///< eta, of the schedule: suits the reference batch
  double gamma = 1;           ///< factor that suits the batch of this step
  double momentum_scale = 1;  ///< what the momentum `u` is multiplied by before the step

  /// \returns the rate itself.
  double value() const noexcept { return base * gamma; }

  /// \returns whether all fields are equal.
  bool operator==(const Rate&) const = default;
};

/// How the rate follows the global batch: gamma for a batch of S times the reference.
enum class ScalingRule : std::uint8_t {
  kLinear,      ///< S (Goyal et al. 2017)
  kSquareRoot,  ///< sqrt(S) (Krizhevsky 2014); for SGD: AdamW takes the root of gamma by itself
  kAdaScale,    ///< from 1 to S, by how noisy the gradient is (Johnson et al. 2020; GradientNoise)
};

/// As command lines may call them.
inline constexpr std::array<Named<ScalingRule>, 3> kScalingRules{{
    {"linear", ScalingRule::kLinear},
    {"sqrt", ScalingRule::kSquareRoot},
    {"adascale", ScalingRule::kAdaScale},
}};

/// The learning rate of a training whose workers come and go: a schedule for the base rate, a rule
/// for how the rate follows the batch, and a policy for when it does.
///
///     const auto contributors = ...allreduce...
///     const double batch = 32.0 * contributors.size();
///     optimizer.step(gradient, batch, learning_rate.step(batch, samples));
///
/// The scale S is the batch over the reference batch; with ResizePolicy::kRamp a growth of S is
/// taken linearly over several steps (LearningRateRamp). The rule makes gamma of S.
///
/// Add it to the `State`: all that decides the rate from here on goes to joiners, schedule, rule
/// and policy included, whatever their own options said, and so it does from a checkpoint; a ramp
/// in progress goes on with the same bits.
///
/// Thread safety: none; belongs to the thread that trains.
class ELASTIC_API LearningRate {
 public:
  /// The parameters of a learning rate.
  struct Options {
    Schedule schedule;           ///< of the base rate
    double batch_reference = 0;  ///< samples per step for which the base rate was chosen; > 0
    ScalingRule rule = ScalingRule::kLinear;    ///< how the rate follows the batch
    ResizePolicy policy = ResizePolicy::kRamp;  ///< elastic::resize_policy() follows the options
    /// Of kRamp alone, as in LearningRateRamp: steps of a ramp, >= 1. Default: the greater of
    /// 8 * growth and 3 / (1 - momentum).
    std::optional<std::uint64_t> ramp_steps = std::nullopt;
    double momentum = 0.9;  ///< the optimizer's mu, or AdamW's beta1
  };

  /// Begins at the schedule's start.
  /// \throws Error kInvalidArgument: batch_reference, ramp_steps or momentum is out of range.
  explicit LearningRate(const Options& options);

  /// Required before each `step` under ScalingRule::kAdaScale; otherwise does nothing. Takes the
  /// sums over all workers of GradientNoise::moments and of the gradients, made by one grouped
  /// allreduce.
  /// \throws Error as GradientNoise::observe.
  void observe(const GradientNoise::Moments& total, Gradient gradient_sum);

  /// Call once per optimizer step, before the update. `batch` is the global batch in samples that
  /// the rate should suit: give the full one also in the short step at an epoch's end, and divide
  /// the summed gradient by it (see LearningRateRamp::step). `samples` are those that were really
  /// used; there may be none, where a death took the only ones of a tail. All workers give the same
  /// numbers.
  /// \returns the rate of this step.
  /// \throws Error kInvalidArgument, changing nothing, unless `batch` is finite and positive and
  ///   `samples` finite and at least 0, and if `observe` is missing.
  Rate step(double batch, double samples);

  /// Goes on by another schedule, from where `progress()` is: after a checkpoint was loaded, whose
  /// schedule came with it, or to change course. The rates so far do not change. All workers
  /// give the same, at the same step boundary; before `run` the first member's holds.
  void set_schedule(Schedule schedule) { schedule_ = std::move(schedule); }
  /// \returns the schedule of the base rate.
  const Schedule& schedule() const noexcept { return schedule_; }

  /// \returns the rate of the latest step; before the first: base 0, gamma 1.
  const Rate& latest() const noexcept { return latest_; }

  /// Where the schedule is. With kAdaScale the steps count by their gain (scale-invariant steps,
  /// times the reference batch), so that training ends when this has reached the schedule's end.
  /// \returns the samples used so far; with kAdaScale the samples of the reference batch that the
  ///   steps were worth.
  double progress() const noexcept { return progress_; }

  /// \returns how the rate follows the batch.
  ScalingRule rule() const noexcept { return rule_; }
  /// \returns when the rate follows the batch.
  ResizePolicy policy() const noexcept { return policy_; }
  /// \returns the ramp of the scale.
  const LearningRateRamp& ramp() const noexcept { return ramp_; }
  /// \returns the estimate of the gradient's noise, for kAdaScale.
  const GradientNoise& noise() const noexcept { return noise_; }

  /// \returns all of it as bytes, for State.
  std::vector<std::byte> save() const;
  /// Reverse of `save`.
  /// \throws Error kInvalidArgument, changing nothing, on other bytes.
  void load(std::span<const std::byte> bytes);

 private:
  double gamma(double scale) const;
  double momentum_scale(double gamma) const;

  Schedule schedule_;
  ScalingRule rule_;
  ResizePolicy policy_;
  LearningRateRamp ramp_;  // of the scale; in one step unless the policy is kRamp
  GradientNoise noise_;
  bool observed_ = false;  // since the latest step
  Rate latest_;
  double progress_ = 0;
};

}  // namespace elastic
