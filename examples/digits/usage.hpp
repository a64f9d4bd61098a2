#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace digits {

/// Keeps account of how often each training sample went into the weights. Its entry in a step's
/// allreduce is one for each sample that a worker used. Summed with the gradients as one unit, it
/// tells exactly what is in them, whichever workers died meanwhile.
struct Usage {
  explicit Usage(std::size_t samples) : times(samples) {}

  /// Adds what the allreduce of one step says.
  void add(std::span<const float> step);

  /// Ends an epoch: counts samples that were not used exactly once, and begins again.
  void audit();

  std::vector<float> times;  ///< in this epoch, per sample
  std::int64_t epochs = 0;   ///< audited
  std::int64_t used = 0;     ///< over all audited epochs: samples used exactly once
  std::int64_t missed = 0;   ///< over all audited epochs: samples not used at all
  std::int64_t twice = 0;    ///< over all audited epochs: samples used more than once
};

}  // namespace digits
