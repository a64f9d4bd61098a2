#include "collectives/backend/nccl/block_counts.hpp"

#include <cstddef>
#include <cstring>
#include <string>

#include "collectives/backend/nccl/collectives/work_for.hpp"
#include "collectives/backend/nccl/readiness.hpp"
#include "collectives/plan/group_block.hpp"

namespace elastic::collectives::nccl {

namespace {

using Counts = std::vector<std::uint64_t>;

/// \returns the numbers of all ranks, those of rank 0 first. All ranks give as many.
Result<Counts> exchange(const ModuleView& view, LaneOperation& operation, const Counts& mine) {
  Payload said;
  said.data.resize(mine.size() * sizeof mine.front());
  std::memcpy(said.data.data(), mine.data(), said.data.size());
  if (Status status = allgather(view, operation, said); !status.ok()) return status;
  Counts all(mine.size() * static_cast<std::size_t>(view.mesh->size()));
  std::memcpy(all.data(), said.data.data(), all.size() * sizeof all.front());
  return all;
}

/// The bytes of each rank's block of all `tensors`.
Result<Counts> grouped_blocks(const std::vector<Section>& tensors, const Counts& counts) {
  Counts blocks;
  for (std::size_t first = 0; first < counts.size(); first += tensors.size()) {
    std::vector<std::size_t> bytes;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const std::uint64_t count = counts[first + i];
      const auto fits = gathered_bytes("grouped_allgather", {count}, size_of(tensors[i].dtype));
      if (!fits.ok()) return fits.status();
      bytes.push_back(fits.value());
    }
    blocks.push_back(plan::GroupBlock(bytes).bytes());
  }
  return blocks;
}

Result<Counts> share_grouped(const ModuleView& view, LaneOperation& operation) {
  const std::vector<Section>& tensors = operation.call.grouped;
  Counts mine;
  for (const Section& tensor : tensors) mine.push_back(tensor.count);
  auto counts = exchange(view, operation, mine);
  if (!counts.ok()) return counts;
  const auto blocks = grouped_blocks(tensors, counts.value());
  if (!blocks.ok()) return blocks.status();
  const auto total = gathered_bytes("grouped_allgather", blocks.value(), 1);
  if (!total.ok()) return total.status();
  return counts;
}

}  // namespace

Result<Counts> share_counts(const ModuleView& view, LaneOperation& operation) {
  if (is_grouped_call(operation.call)) return share_grouped(view, operation);
  const Section& block = operation.call.sections.front();
  auto counts = exchange(view, operation, {block.count});
  if (!counts.ok()) return counts;
  const auto total = gathered_bytes("allgather", counts.value(), size_of(block.dtype));
  if (!total.ok()) return total.status();
  return counts;
}

}  // namespace elastic::collectives::nccl
