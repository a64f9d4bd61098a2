#include "collectives/backend/own_result.hpp"

#include <cstring>
#include <numeric>

#include "collectives/kernels/reduce.hpp"

namespace elastic::collectives {

OwnBlocks own_blocks(const Payload& payload, int rank, std::size_t element) {
  OwnBlocks own;
  const auto counts = payload.counts();
  const auto data = payload.result();
  if (payload.of_this_rank()) {
    own.counts.assign(counts.begin(), counts.end());
    own.data.assign(data.begin(), data.end());
    return own;
  }
  std::size_t ranks = 0;
  while (ranks * ranks < counts.size()) ++ranks;
  std::size_t at = 0;
  for (std::size_t from = 0; from < ranks; ++from) {
    for (std::size_t to = 0; to < ranks; ++to) {
      const std::uint64_t count = counts[from * ranks + to];
      const std::size_t bytes = static_cast<std::size_t>(count) * element;
      if (to == static_cast<std::size_t>(rank)) {
        own.counts.push_back(count);
        own.data.insert(own.data.end(), data.begin() + static_cast<std::ptrdiff_t>(at),
                        data.begin() + static_cast<std::ptrdiff_t>(at + bytes));
      }
      at += bytes;
    }
  }
  return own;
}

OwnPart own_part(const Payload& payload, int rank, std::size_t element) {
  const auto counts = payload.counts();
  const auto mine = counts.begin() + rank;
  const auto before =
      static_cast<std::size_t>(std::accumulate(counts.begin(), mine, std::uint64_t{0}));
  const std::size_t begin = payload.of_this_rank() ? 0 : before * element;
  return {payload.result().subspan(begin, static_cast<std::size_t>(*mine) * element), before};
}

void own_scan(const Payload& payload, int contributors, DType dtype, ReduceOp op, std::size_t count,
              std::byte* result) {
  const std::size_t bytes = count * size_of(dtype);
  if (bytes == 0) return;
  const std::byte* next = payload.data.data();
  std::memcpy(result, next, bytes);
  if (payload.of_this_rank()) return;
  const kernels::Function reduce = kernels::reduce(dtype, op);
  for (int rank = 1; rank < contributors; ++rank) {
    next += bytes;
    reduce(result, result, next, count);
  }
}

}  // namespace elastic::collectives
