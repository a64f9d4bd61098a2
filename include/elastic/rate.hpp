#pragma once

namespace elastic {

/// The rate of one step of an optimizer, from LearningRate.
struct Rate {
  double base = 0;            ///< eta, of the schedule: suits the reference batch
  double gamma = 1;           ///< factor that suits the batch of this step
  double momentum_scale = 1;  ///< what the momentum `u` is multiplied by before the step

  /// The rate itself.
  double value() const noexcept { return base * gamma; }

  bool operator==(const Rate&) const = default;
};

}  // namespace elastic
