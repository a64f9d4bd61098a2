#include "elastic/learning_rate.hpp"

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "elastic/error.hpp"
#include "training/arguments.hpp"
#include "training/bytes.hpp"
#include "training/ramp_options.hpp"

namespace elastic {
namespace {

[[noreturn]] void invalid_rate(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, "LearningRate: " + message);
}

LearningRateRamp::Options ramp_options(const LearningRate::Options& options) {
  LearningRateRamp::Options its{options.batch_reference, 1, options.momentum};
  if (options.policy == ResizePolicy::kRamp) its.ramp_steps = options.ramp_steps;
  training::require_valid(its, "LearningRate");
  return its;
}

template <typename T, std::size_t kCount>
bool take_choice(training::ByteReader& reader, const std::array<Named<T>, kCount>& choices,
                 T& value) {
  std::uint8_t index = 0;
  if (!reader.take(index) || index >= choices.size()) return false;
  value = static_cast<T>(index);
  return true;
}

}  // namespace

LearningRate::LearningRate(const Options& options)
    : schedule_(options.schedule),
      rule_(options.rule),
      policy_(options.policy),
      ramp_(ramp_options(options)) {}

void LearningRate::observe(const GradientNoise::Moments& total, Gradient gradient_sum) {
  if (rule_ != ScalingRule::kAdaScale) return;
  noise_.observe(total, gradient_sum, ramp_.get().batch_reference);
  observed_ = true;
}

Rate LearningRate::step(double batch, double samples) {
  training::require(training::not_negative(samples), "LearningRate", "the step's number of samples",
                    samples, "a finite number, at least 0");
  if (rule_ == ScalingRule::kAdaScale && !observed_) {
    invalid_rate("step() without observe() since the step before; AdaScale needs it in each step");
  }
  const double scale = ramp_.step(batch);
  observed_ = false;
  Rate next{schedule_.rate(progress_), gamma(scale), 1};
  next.momentum_scale = momentum_scale(next.gamma);
  latest_ = next;
  progress_ += rule_ == ScalingRule::kAdaScale
                   ? samples * (next.gamma * ramp_.get().batch_reference / batch)
                   : samples;
  return latest_;
}

double LearningRate::gamma(double scale) const {
  if (policy_ == ResizePolicy::kNone) return 1;
  switch (rule_) {
    case ScalingRule::kLinear:
      return scale;
    case ScalingRule::kSquareRoot:
      return std::sqrt(scale);
    case ScalingRule::kAdaScale:
      return noise_.gain(scale, ramp_.get().batch_reference);
  }
  return scale;
}

/// The factor on the momentum when the scale has just changed.
double LearningRate::momentum_scale(double gamma) const {
  const bool resized = ramp_.gamma() != ramp_.get().gamma_before;
  if (resized && policy_ == ResizePolicy::kRescale) return latest_.gamma / gamma;
  if (resized && policy_ == ResizePolicy::kReset) return 0;
  return 1;
}

std::vector<std::byte> LearningRate::save() const {
  std::vector<std::byte> bytes;
  training::put(bytes, static_cast<std::uint8_t>(rule_));
  training::put(bytes, static_cast<std::uint8_t>(policy_));
  for (const double value : {latest_.base, latest_.gamma, latest_.momentum_scale, progress_}) {
    training::put(bytes, value);
  }
  training::put_part(bytes, schedule_.save());
  training::put_part(bytes, ramp_.save());
  training::put_part(bytes, noise_.save());
  return bytes;
}

void LearningRate::load(std::span<const std::byte> bytes) {
  LearningRate loaded = *this;
  training::ByteReader reader(bytes);
  bool whole = take_choice(reader, kScalingRules, loaded.rule_) &&
               take_choice(reader, kResizePolicies, loaded.policy_);
  Rate& latest = loaded.latest_;
  for (double* value : {&latest.base, &latest.gamma, &latest.momentum_scale, &loaded.progress_}) {
    whole = whole && reader.take(*value) && training::not_negative(*value);
  }
  std::span<const std::byte> schedule;
  std::span<const std::byte> ramp;
  std::span<const std::byte> noise;
  whole = whole && training::positive(latest.gamma) && reader.take_part(schedule) &&
          reader.take_part(ramp) && reader.take_part(noise) && reader.left() == 0;
  if (!whole) invalid_rate(std::to_string(bytes.size()) + " bytes are not a saved rate");
  loaded.schedule_.load(schedule);
  loaded.ramp_.load(ramp);
  loaded.noise_.load(noise);
  loaded.observed_ = false;
  *this = std::move(loaded);
}

}  // namespace elastic
