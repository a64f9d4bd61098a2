#pragma once

#include <cstdint>
#include <span>

namespace elastic::codecs {

/// The sum of squares.
double squared_norm(std::span<const float> values);

/// Tells a residual that grows without end from one that the next calls send. A kind with a
/// threshold sends at most the threshold of an element in a call. Where the gradients' mean is
/// larger than that, the residual grows with every call, and the training follows old gradients.
class Backlog {
 public:
  /// So many calls in a row: residuals of the large gradients at the start of a training are gone
  /// by then.
  static constexpr std::uint64_t kCalls = 32;

  /// To be called after every call on the tensor, with the root mean square of its residual. True
  /// when that was above `threshold` in the last kCalls calls, and has grown over them.
  bool grows(double root_mean_square, double threshold);

 private:
  std::uint64_t calls_ = 0;  // in a row
  double first_ = 0;         // in the first of them
};

}  // namespace elastic::codecs
