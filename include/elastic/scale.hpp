#pragma once

namespace elastic {

/// Factors of an allreduce: for gradients that are weighted, or that would overflow a sum in f16.
/// All members give the same. They cost no pass over the tensors of their own, but large tensors
/// are not worked on in place.
///
/// Floats only: elements are multiplied in their own type, 16-bit ones as float, and rounded once.
/// Whole numbers would be cut off without a word, so for them both factors are 1.
class Scale {
 public:
  /// \param before multiplies each member's tensor before they are combined.
  /// \param after multiplies the result; for kAverage after the division.
  constexpr Scale(double before, double after) : before_(before), after_(after) {}

  /// \returns the factor of each member's tensor.
  constexpr double before() const { return before_; }
  /// \returns the factor of the result.
  constexpr double after() const { return after_; }
  /// \returns whether both factors are the same.
  bool operator==(const Scale&) const = default;

 private:
  double before_;
  double after_;
};

}  // namespace elastic
