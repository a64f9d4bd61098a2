#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace elastic {

/// What the links of a view were measured to do, and how allreduces are made because of it. The
/// same on all ranks.
struct Tuning {
  /// While every rank sends a message and receives one. Zeros where there is no such link.
  struct Link {
    double latency_us = 0;
    double gigabytes_per_second = 0;  ///< powers of ten, each way, of each rank
  };
  struct Choice {
    std::size_t up_to_bytes = 0;  ///< of the tensor; the last: however large
    /// "letters", "direct", "doubling", "swap", "pairwise", "hierarchical" or "ring".
    std::string algorithm;
  };

  std::uint64_t generation = 0;  ///< of the view; 0: there was no operation yet
  Link inside_hosts;
  Link between_hosts;
  std::vector<Choice> allreduce;  ///< by ascending size
  std::size_t segment_bytes = 0;  ///< pieces of large tensors, where not swapped
};

}  // namespace elastic
