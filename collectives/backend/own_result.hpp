#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/backend/payload.hpp"
#include "elastic/types.hpp"

namespace elastic::collectives {

// The result of one rank in a collective with results that differ by rank. The payload has it, or
// the data that all ranks gave (Blocks).

struct OwnBlocks {
  std::vector<std::byte> data;
  std::vector<std::uint64_t> counts;  ///< elements from each rank
};
/// The blocks that `rank` gets in an alltoall of elements of `element` bytes.
OwnBlocks own_blocks(const Payload& payload, int rank, std::size_t element);

/// The part that `rank` gets in a scatter or a reduce_scatter, and the elements of the ranks before
/// it.
struct OwnPart {
  std::span<const std::byte> data;  ///< in the payload
  std::size_t offset = 0;
};
OwnPart own_part(const Payload& payload, int rank, std::size_t element);

/// Writes to `result` what a rank gets in a scan of `count` elements, of which `contributors` ranks
/// from rank 0 on are in its sum: at least one. Averages are sums here.
void own_scan(const Payload& payload, int contributors, DType dtype, ReduceOp op, std::size_t count,
              std::byte* result);

}  // namespace elastic::collectives
