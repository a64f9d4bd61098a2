#include "coordinator/note_routes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

namespace elastic::coordinator {

namespace {

/// The origin of a note on its way to the leader, in front of it.
using Origin = std::uint32_t;
static_assert(std::endian::native == std::endian::little, "the origin is sent as it lies");

}  // namespace

NoteRoutes::NoteRoutes(int rank, int size, bool all_linked)
    : rank_(rank), size_(size), tree_(!all_linked) {
  if (!tree_) {
    if (rank > 0) above_.push_back(0);
    for (int other = 1; rank == 0 && other < size; ++other) below_.push_back(other);
    return;
  }
  // The subtree of a rank has as many ranks as the lowest bit of its number says.
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

std::vector<std::byte> NoteRoutes::wrap(std::vector<std::byte> note) const {
  if (!tree_ || rank_ == 0) return note;
  const auto origin =
      std::bit_cast<std::array<std::byte, sizeof(Origin)>>(static_cast<Origin>(rank_));
  note.insert(note.begin(), origin.begin(), origin.end());
  return note;
}

Result<NoteRoutes::Arrival> NoteRoutes::arrive(int from, std::span<const std::byte> note) const {
  if (!tree_) return Arrival{from, note, {}};
  const bool comes_down = std::ranges::find(above_, from) != above_.end();
  if (comes_down) return Arrival{0, note, below_};
  Origin origin = 0;
  if (note.size() >= sizeof origin) std::memcpy(&origin, note.data(), sizeof origin);
  if (origin == 0 || origin >= static_cast<Origin>(size_)) {
    return Status(Code::kProtocol, "a note on named tensors, passed on by rank " +
                                       std::to_string(from) + ", comes from no rank");
  }
  if (rank_ > 0) return Arrival{static_cast<int>(origin), {}, above_};
  return Arrival{static_cast<int>(origin), note.subspan(sizeof origin), {}};
}

}  // namespace elastic::coordinator
