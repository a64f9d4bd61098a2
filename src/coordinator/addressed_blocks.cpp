#include "coordinator/addressed_blocks.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

namespace elastic::coordinator {
namespace {

std::optional<std::size_t> place_of(WorkerId worker, const Contributors& among) {
  const auto workers = among.workers();
  const auto found = std::find(workers.begin(), workers.end(), worker);
  if (found == workers.end()) return std::nullopt;
  return static_cast<std::size_t>(found - workers.begin());
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
  std::vector<std::uint64_t> counts;
  for (int rank = 0; rank < members.size(); ++rank) {
    const auto place = place_of((*members.ids)[static_cast<std::size_t>(rank)], to_);
    if (!place) {
      return wrong("gave blocks for the members of generation " + std::to_string(to_.generation()) +
                   ", and none for rank " + std::to_string(rank) +
                   ", which has joined since: ask for the members again");
    }
    counts.push_back(counts_[*place]);
  }
  return counts;
}

std::span<const std::byte> AddressedBlocks::as_they_lie(const Members& members) const {
  if (!fault_.empty() || !std::ranges::equal(to_.workers(), *members.ids)) return {};
  return {static_cast<const std::byte*>(data_.data), data_.bytes()};
}

void AddressedBlocks::pack(const Members& members, collectives::Buffer& buffer) const {
  const std::size_t element = size_of(data_.dtype);
  std::vector<std::size_t> places;
  std::size_t total = 0;
  for (const WorkerId worker : *members.ids) {
    places.push_back(*place_of(worker, to_));
    total += counts_[places.back()] * element;
  }
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
