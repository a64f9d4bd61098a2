#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "elastic/detail/export.hpp"

namespace elastic {

/// Base rate as a function of the samples seen in the whole training. It is no function of steps,
/// because the amount of training in a step changes with the number of workers.
///
/// A value, computed with operations that give the same bits on all processors.
class ELASTIC_API Schedule {
 public:
  /// Always `base`, > 0.
  /// \returns the schedule.
  /// \throws Error kInvalidArgument for a `base` out of the given range.
  static Schedule constant(double base);

  /// `base`, times `factor` (> 0, at most 1) from each of the `milestones` on: samples, > 0,
  /// ascending.
  /// \returns the schedule.
  /// \throws Error kInvalidArgument for arguments out of the given ranges.
  static Schedule step(double base, std::vector<double> milestones, double factor = 0.1);

  /// From `base` along half a cosine to `last` (0 to `base`) at `samples` (> 0), and there it stays
  /// (Loshchilov and Hutter 2017, without restarts).
  /// \returns the schedule.
  /// \throws Error kInvalidArgument for arguments out of the given ranges.
  static Schedule cosine(double base, double samples, double last = 0);

  /// From `base` to `last` along (1 - s / samples)^power, `power` > 0, where s is the number of
  /// samples seen; 1 is a straight line.
  /// \returns the schedule.
  /// \throws Error kInvalidArgument for arguments out of the given ranges.
  static Schedule polynomial(double base, double samples, double power = 1, double last = 0);

  /// This schedule with a gradual warm-up (Goyal et al. 2017): it rises linearly from `first` over
  /// the first `samples` (> 0) to this schedule's rate there, which `first` (>= 0) does not exceed.
  /// The rest stays as it is.
  /// \returns the new schedule.
  /// \throws Error kInvalidArgument for arguments out of the given ranges.
  Schedule with_warm_up(double samples, double first) const;

  /// \returns the base rate after `samples` samples (>= 0).
  double rate(double samples) const;

  /// \returns all of it as bytes, for State.
  std::vector<std::byte> save() const;
  /// Reverse of `save`.
  /// \throws Error kInvalidArgument, changing nothing, on other bytes.
  void load(std::span<const std::byte> bytes);

 private:
  enum class Kind : std::uint8_t { kConstant, kStep, kCosine, kPolynomial };

  Schedule(Kind kind, double base);
  void end_at(double samples, double last);
  double without_warm_up(double samples) const;
  void check() const;

  Kind kind_;
  double base_;
  double factor_ = 1;               // kStep
  std::vector<double> milestones_;  // kStep
  double samples_ = 1;              // kCosine, kPolynomial: where it ends
  double last_ = 0;                 // kCosine, kPolynomial: the rate after that
  double power_ = 1;                // kPolynomial
  double warm_up_samples_ = 0;      // 0: none
  double warm_up_first_ = 0;
};

}  // namespace elastic
