#include "runtime/state_difference.hpp"

#include <span>

namespace elastic::runtime {

namespace {

constexpr const char* kAdvice = "; add the same entries, of the same sizes, on all workers";

std::string elements(std::uint64_t count) {
  return std::to_string(count) + " elements";
}

std::string entries(std::size_t length) {
  return std::to_string(length / 2) + " entries";
}

/// Of two summaries of the same length.
std::string difference(std::span<const std::uint64_t> first, std::span<const std::uint64_t> other,
                       const std::string& rank, const Layout& layout) {
  const std::size_t count = first.size() / 2;
  for (std::size_t at = 0; at < first.size(); ++at) {
    if (first[at] == other[at]) continue;
    const std::string differs = rank + " differs from rank 0 in ";
    if (at == first.size() - 1) return differs + "the number of commits";
    const std::size_t entry = at % count;
    const std::string name = entry < layout.size() ? layout[entry].name : std::to_string(entry);
    const std::string where = differs + "state entry '" + name + "'";
    if (at >= count) return where;
    return where + ": rank 0 has " + elements(first[at]) + ", " + rank + " has " +
           elements(other[at]) + kAdvice;
  }
  return {};
}

}  // namespace

std::vector<std::uint64_t> state_summary(const Layout& layout,
                                         const std::vector<std::uint64_t>& hashes,
                                         std::uint64_t commits) {
  std::vector<std::uint64_t> summary;
  for (const LayoutEntry& entry : layout) summary.push_back(entry.count);
  summary.insert(summary.end(), hashes.begin(), hashes.end());
  summary.push_back(commits);
  return summary;
}

std::string state_difference(const std::vector<std::uint64_t>& all,
                             const std::vector<std::size_t>& lengths, const Layout& layout) {
  std::span<const std::uint64_t> rest(all);
  std::span<const std::uint64_t> first;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank) {
    const auto own = rest.first(lengths[rank]);
    rest = rest.subspan(lengths[rank]);
    if (rank == 0) first = own;
    const std::string name = "rank " + std::to_string(rank);
    if (own.size() != first.size()) {
      return "rank 0 has a state of " + entries(first.size()) + ", " + name + " one of " +
             entries(own.size()) + kAdvice;
    }
    if (std::string found = difference(first, own, name, layout); !found.empty()) return found;
  }
  return {};
}

}  // namespace elastic::runtime
