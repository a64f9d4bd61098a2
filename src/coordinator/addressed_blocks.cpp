#include "coordinator/addressed_blocks.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace elastic::coordinator {
namespace {

constexpr std::size_t kNone = ~std::size_t{0};

/// For each member, by rank, the index of its block; kNone if it has none.
std::vector<std::size_t> places_of(const Members& members, const Contributors& to) {
  std::vector<std::size_t> places(members.ids->size(), kNone);
  const auto workers = to.workers();
  if (std::ranges::equal(workers, *members.ids)) {
    std::iota(places.begin(), places.end(), std::size_t{0});
    return places;
  }
  std::unordered_map<WorkerId, std::size_t> index;
  for (std::size_t i = 0; i < workers.size(); ++i) index.emplace(workers[i], i);
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const auto found = index.find((*members.ids)[rank]);
    if (found != index.end()) places[rank] = found->second;
  }
  return places;
}

}  // namespace

AddressedBlocks::AddressedBlocks(ConstTensorView data, std::vector<std::size_t> counts,
                                 Contributors to)
    : data_(data), counts_(std::move(counts)), to_(std::move(to)), fault_(find_fault()) {
  if (!fault_.empty()) return;
  if (counts_.empty()) counts_.assign(to_.size(), data_.count / to_.size());
  offsets_.resize(counts_.size());
  std::exclusive_scan(counts_.begin(), counts_.end(), offsets_.begin(), std::size_t{0});
}

std::string AddressedBlocks::find_fault() const {
  const std::string members =
      std::to_string(to_.size()) + " members of generation " + std::to_string(to_.generation());
  if (counts_.empty()) {
    if (to_.size() > 0 && data_.count % to_.size() == 0) return {};
    return "gave " + std::to_string(data_.count) + " elements, which are no equal blocks for the " +
           members;
  }
  if (counts_.size() != to_.size()) {
    return "gave " + std::to_string(counts_.size()) + " blocks for the " + members;
  }
  std::size_t left = data_.count;
  const bool fit = std::ranges::all_of(
      counts_, [&](std::size_t count) { return count <= left && (left -= count, true); });
  if (fit && left == 0) return {};
  return "gave blocks that do not add up to the " + std::to_string(data_.count) +
         " elements of its tensor";
}

Result<std::vector<std::uint64_t>> AddressedBlocks::counts_for(const Members& members) const {
  const auto wrong = [&](const std::string& what) {
    return Status(Code::kMismatch, "rank " + std::to_string(members.rank) + " " + what);
  };
  if (!fault_.empty()) return wrong(fault_);
  const std::vector<std::size_t> places = places_of(members, to_);
  const auto missing = std::ranges::find(places, kNone);
  if (missing != places.end() && to_.generation() == members.generation) {
    return wrong("gave blocks for " + std::to_string(to_.size()) + " workers, and none for rank " +
                 std::to_string(missing - places.begin()) +
                 ": name each member once, in any order");
  }
  if (missing != places.end()) {
    return wrong("gave blocks for the members of generation " + std::to_string(to_.generation()) +
                 ", and none for rank " + std::to_string(missing - places.begin()) +
                 ", which has joined since: ask for the members again");
  }
  std::vector<std::uint64_t> counts;
  for (const std::size_t place : places) counts.push_back(counts_[place]);
  return counts;
}

std::span<const std::byte> AddressedBlocks::as_they_lie(const Members& members) const {
  if (!fault_.empty() || !std::ranges::equal(to_.workers(), *members.ids)) return {};
  return {static_cast<const std::byte*>(data_.data), data_.bytes()};
}

void AddressedBlocks::pack(const Members& members, collectives::Buffer& buffer) const {
  const std::size_t element = size_of(data_.dtype);
  const std::vector<std::size_t> places = places_of(members, to_);
  std::size_t total = 0;
  for (const std::size_t place : places) total += counts_[place] * element;
  buffer.resize(total);
  std::byte* into = buffer.data();
  const auto* const from = static_cast<const std::byte*>(data_.data);
  for (const std::size_t place : places) {
    const std::size_t bytes = counts_[place] * element;
    if (bytes > 0) std::memcpy(into, from + offsets_[place] * element, bytes);
    into += bytes;
  }
}

}  // namespace elastic::coordinator
