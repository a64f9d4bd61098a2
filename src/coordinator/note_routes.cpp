#include "coordinator/note_routes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace elastic::coordinator {

namespace {

/// The ranks that a note on its way to the leader is of, in front of it.
struct Origin {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};
using OriginBytes = std::array<std::byte, sizeof(Origin)>;
static_assert(std::endian::native == std::endian::little, "the origin is sent as it lies");

}  // namespace

NoteRoutes::NoteRoutes(int rank, int size, bool all_linked)
    : rank_(rank), size_(size), tree_(!all_linked) {
  if (!tree_) {
    if (rank > 0) above_.push_back(0);
    for (int other = 1; rank == 0 && other < size; ++other) below_.push_back(other);
    return;
  }
  const int span =
      rank > 0 ? rank & -rank : static_cast<int>(std::bit_ceil(static_cast<unsigned>(size)));
  if (rank > 0) above_.push_back(rank - span);
  for (int hop = span / 2; hop > 0; hop /= 2) {
    if (rank + hop < size) below_.push_back(rank + hop);
  }
}

std::vector<int> NoteRoutes::peers() const {
  std::vector<int> all = above_;
  all.insert(all.end(), below_.begin(), below_.end());
  return all;
}

// The subtree of a rank has as many ranks as the lowest bit of its number says.
RankRange NoteRoutes::subtree_of(int rank) const {
  if (rank == 0) return {0, size_};
  return {rank, tree_ ? std::min(rank & -rank, size_ - rank) : 1};
}

std::vector<std::byte> NoteRoutes::wrap(RanksNote note) const {
  if (!tree_ || rank_ == 0) return std::move(note.bytes);
  const auto origin = std::bit_cast<OriginBytes>(Origin{
      static_cast<std::uint32_t>(note.from.first), static_cast<std::uint32_t>(note.from.count)});
  note.bytes.insert(note.bytes.begin(), origin.begin(), origin.end());
  return std::move(note.bytes);
}

Result<NoteRoutes::Arrival> NoteRoutes::arrive(int from, std::span<const std::byte> note) const {
  if (!tree_) return Arrival{{from, 1}, note, {}};
  const bool comes_down = std::ranges::find(above_, from) != above_.end();
  if (comes_down) return Arrival{{0, 1}, note, below_};
  Origin origin;
  if (note.size() >= sizeof origin) std::memcpy(&origin, note.data(), sizeof origin);
  const RankRange all = subtree_of(from);
  const auto first = static_cast<std::uint32_t>(all.first);
  const auto end = static_cast<std::uint32_t>(all.end());
  if (origin.count == 0 || origin.first < first || origin.first >= end ||
      origin.count > end - origin.first) {
    return Status(Code::kProtocol, "a note on named tensors, sent by rank " + std::to_string(from) +
                                       ", comes from no ranks below it");
  }
  const RankRange said_by{static_cast<int>(origin.first), static_cast<int>(origin.count)};
  return Arrival{said_by, note.subspan(sizeof origin), {}};
}

}  // namespace elastic::coordinator
