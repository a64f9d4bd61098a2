#pragma once

#include <cstddef>

namespace elastic::transport {

/// Enough to fill most of a line whose provider caps a single flow at a tenth of it.
inline constexpr std::size_t kFlowsBetweenHosts = 8;

/// Which links a worker has to hosts other than its own.
struct FarLinks {
  std::size_t ranks_here = 1;   ///< on this worker's host, itself included
  std::size_t ranks_there = 1;  ///< on the peer's
  std::size_t links = 1;        ///< to all other hosts together
};

/// TCP connections that a link to another host is made of, where no number was asked for. A
/// collective uses one link of every rank of a host at a time: all of these together have about
/// kFlowsBetweenHosts. At least one, and no more than leave half of `descriptors` for other things.
std::size_t flows_per_link(const FarLinks& far, std::size_t descriptors);

/// Descriptors that this process may have open.
std::size_t descriptor_limit();

}  // namespace elastic::transport
