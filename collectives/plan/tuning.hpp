#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "collectives/plan/choose.hpp"
#include "collectives/plan/hosts.hpp"

/// From what links were measured to do to what is chosen for them. The model is the usual one of
/// latency and bandwidth (Hockney 1994; Thakur, Rabenseifner and Gropp 2005 for the algorithms).
namespace elastic::plan {

inline constexpr std::uint64_t kMib = std::uint64_t{1} << 20;

/// The cost of a message while every rank sends one and receives one. Whole numbers, so that all
/// ranks calculate the same, whatever they were compiled for.
struct LinkCost {
  std::uint64_t latency_ns = 0;
  std::uint64_t ns_per_mib = 0;

  std::uint64_t of(std::uint64_t bytes) const { return latency_ns + bytes * ns_per_mib / kMib; }
};

/// The greater of each.
inline LinkCost greater(const LinkCost& a, const LinkCost& b) {
  return {std::max(a.latency_ns, b.latency_ns), std::max(a.ns_per_mib, b.ns_per_mib)};
}

struct LinkCosts {
  LinkCost inside;          ///< a host; zeros where each rank has its own
  LinkCost between;         ///< hosts; zeros where there is one
  std::uint64_t flows = 1;  ///< that carry the data of a link between hosts; then it costs that
};

/// The time of the messages of an allreduce of so many bytes, in nanoseconds.
std::uint64_t estimate(AllreduceAlgorithm algorithm, const Hosts& hosts, const LinkCosts& costs,
                       std::size_t bytes);

/// `given`, with the sizes up to which algorithms are used taken from the costs.
Thresholds tuned(const Hosts& hosts, const LinkCosts& costs, Thresholds given);

/// Segments so long that their latency hardly counts, and no longer: `most` at most.
std::size_t tuned_segment(const Hosts& hosts, const LinkCosts& costs, std::size_t most);

}  // namespace elastic::plan
