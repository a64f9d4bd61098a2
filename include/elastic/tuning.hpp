#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace elastic {

/// The measured capabilities of a view's links, and the resulting choice of allreduces. The same on
/// all ranks.
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
  /// TCP connections of a link between hosts: of the one that has most, and how many of them carry
  /// data, in all links that have so many. 0 where there is one host.
  int flows_opened = 0;
  int flows_used = 0;
  std::vector<Choice> allreduce;  ///< by ascending size
  std::size_t segment_bytes = 0;  ///< pieces of large tensors, where not swapped
};

}  // namespace elastic
