#pragma once

#include <cstddef>

namespace elastic::transport {

/// Enough to fill a line whose provider caps a single flow at a tenth of it, though flows are not
/// equally fast.
inline constexpr std::size_t kFlowsBetweenHosts = 16;

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

/// Cores of a host, and those of them on which this process may run.
struct Cores {
  std::size_t of_host = 1;
  std::size_t usable = 1;
};
Cores count_cores();

/// Threads that move the bytes of a lane's large operations over TCP, where no number was asked
/// for: one for every four cores that each of the ranks of this host has, but no more than four.
/// So they leave most cores to the trainer, and a host with few cores has one.
std::size_t threads_per_lane(const Cores& cores, std::size_t ranks_here);

/// Descriptors that this process may have open.
std::size_t descriptor_limit();

}  // namespace elastic::transport
