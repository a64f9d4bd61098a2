#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/plan/plan.hpp"

/// Exchanges in which a block is for one rank only. Blocks lie in rank order without gaps, and
/// travel in segments straight to their rank: no algorithm sends fewer bytes. A block without
/// elements is no message. So these may complete on some ranks before others have started.
namespace elastic::plan {

/// Block i of kInput, of `to[i]` bytes, goes to rank i; block i of kData, of `from[i]` bytes, comes
/// from rank i. kInput and kData are different memory.
Plan alltoall(int rank, const std::vector<std::uint64_t>& to,
              const std::vector<std::uint64_t>& from, std::size_t segment_bytes);

/// kInput of rank i, of `bytes[i]` bytes, becomes block i of kData of the root. Different memory.
Plan gather(int rank, int root, const std::vector<std::uint64_t>& bytes, std::size_t segment_bytes);

/// Block i of kInput of the root, of `bytes[i]` bytes, becomes kData of rank i. Different memory.
Plan scatter(int rank, int root, const std::vector<std::uint64_t>& bytes,
             std::size_t segment_bytes);

}  // namespace elastic::plan
