#pragma once

#include <atomic>
#include <cstdint>

namespace elastic {

/// Figures of the training in this process that objects of the trainer know, for monitoring. These
/// objects know no Context, so the figures belong to the process.
///
/// Any thread.
struct TrainingFigures {
  std::atomic<std::uint64_t> gradient_bytes{0};  ///< given to GradientCompressors, in sum
  std::atomic<std::uint64_t> encoded_bytes{0};   ///< the same as they travel
  std::atomic<double> ramp_gamma{0};             ///< of the latest step; 0: there is no ramp
  std::atomic<double> ramp_target{0};
};

/// \returns the only one of this process.
inline TrainingFigures& training_figures() {
  static TrainingFigures figures;
  return figures;
}

}  // namespace elastic
