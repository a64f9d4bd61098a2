#include "collectives/backend/nccl/small_allgather.hpp"

#include <algorithm>
#include <cstdint>

namespace elastic::collectives::nccl {

SmallAllgather::SmallAllgather(transport::Mesh& mesh, const transport::OpTag& tag,
                               std::size_t bytes)
    : mesh_(mesh), bytes_(bytes), messages_(bytes * static_cast<std::size_t>(mesh.size())) {
  mesh_.begin(tag, {});
  for (int rank = 0; rank < mesh_.size(); ++rank) {
    if (rank != mesh_.rank()) mesh_.link(rank).receive({place(rank), {}});
  }
}

SmallAllgather::~SmallAllgather() {
  if (!finished_) mesh_.abandon();
}

std::span<std::byte> SmallAllgather::place(int rank) {
  return std::span(messages_).subspan(static_cast<std::size_t>(rank) * bytes_, bytes_);
}

std::span<const std::byte> SmallAllgather::of(int rank) const {
  return std::span(messages_).subspan(static_cast<std::size_t>(rank) * bytes_, bytes_);
}

bool SmallAllgather::has_come(int rank) const {
  return rank == mesh_.rank() || mesh_.link(rank).received() == 1;
}

void SmallAllgather::send(std::span<const std::byte> mine) {
  const std::span<std::byte> own = place(mesh_.rank());
  std::copy(mine.begin(), mine.end(), own.begin());
  for (int rank = 0; rank < mesh_.size(); ++rank) {
    if (rank != mesh_.rank()) mesh_.link(rank).send(own);
  }
}

bool SmallAllgather::all_done() const {
  for (int rank = 0; rank < mesh_.size(); ++rank) {
    if (rank == mesh_.rank()) continue;
    if (!has_come(rank) || mesh_.link(rank).sent() != 1) return false;
  }
  return true;
}

Status SmallAllgather::finish() {
  const Status status = mesh_.run_until([this] { return all_done(); });
  finished_ = status.ok();
  return status;
}

Result<bool> SmallAllgather::all(bool mine) {
  const std::byte word{mine ? std::uint8_t{1} : std::uint8_t{0}};
  send({&word, 1});
  if (Status status = finish(); !status.ok()) return status;
  return std::ranges::find(messages_, std::byte{0}) == messages_.end();
}

}  // namespace elastic::collectives::nccl
