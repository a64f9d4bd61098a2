#include "runtime/state_difference.hpp"

#include <algorithm>
#include <cstring>
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

/// Marks a refusal. No entry has so many elements, and no state so many commits.
constexpr std::uint64_t kRefusal = ~std::uint64_t{0};
constexpr std::size_t kRefusalWords = 3;  // kRefusal, whether it is final, the bytes of its text
constexpr std::size_t kMostRefusalText = 1000;

using Summary = std::span<const std::uint64_t>;

bool is_refusal(Summary summary) {
  return summary.size() >= kRefusalWords && summary.front() == kRefusal;
}

std::string refusal_text(Summary summary) {
  const auto text = std::as_bytes(summary.subspan(kRefusalWords));
  std::string result(std::min<std::uint64_t>(summary[2], text.size()), '\0');
  std::memcpy(result.data(), text.data(), result.size());
  return result;
}

std::vector<Summary> by_rank(const std::vector<std::uint64_t>& all,
                             const std::vector<std::size_t>& lengths) {
  std::vector<Summary> summaries;
  Summary rest(all);
  for (const std::size_t length : lengths) {
    summaries.push_back(rest.first(length));
    rest = rest.subspan(length);
  }
  return summaries;
}

/// The first difference of two summaries of the same length.
std::string difference(Summary first, const std::string& first_rank, Summary other,
                       const std::string& rank, const Layout& layout) {
  const std::size_t count = first.size() / 2;
  for (std::size_t at = 0; at < first.size(); ++at) {
    if (first[at] == other[at]) continue;
    const std::string differs = rank + " differs from " + first_rank + " in ";
    if (at == first.size() - 1) return differs + "the number of commits";
    const std::size_t entry = at % count;
    const std::string name = entry < layout.size() ? layout[entry].name : std::to_string(entry);
    const std::string where = differs + "state entry '" + name + "'";
    if (at >= count) return where;
    return where + ": " + first_rank + " has " + elements(first[at]) + ", " + rank + " has " +
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

std::vector<std::uint64_t> refusal_summary(const Status& why, bool final) {
  const std::string text = why.message().substr(0, kMostRefusalText);
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  std::vector<std::uint64_t> summary(kRefusalWords + (text.size() + kWord - 1) / kWord);
  summary[0] = kRefusal;
  summary[1] = final ? 1 : 0;
  summary[2] = text.size();
  std::memcpy(summary.data() + kRefusalWords, text.data(), text.size());
  return summary;
}

StateRefusals state_refusals(const std::vector<std::uint64_t>& all,
                             const std::vector<std::size_t>& lengths) {
  StateRefusals refusals;
  const std::vector<Summary> summaries = by_rank(all, lengths);
  for (std::size_t rank = 0; rank < summaries.size(); ++rank) {
    if (!is_refusal(summaries[rank])) continue;
    if (refusals.ranks++ == 0) {
      refusals.text = "rank " + std::to_string(rank) +
                      " could not take the job's state over: " + refusal_text(summaries[rank]);
    }
    refusals.final = refusals.final || summaries[rank][1] != 0;
  }
  if (refusals.ranks > 1) {
    refusals.text += "; nor could " + std::to_string(refusals.ranks - 1) + " more of the ranks";
  }
  return refusals;
}

std::string state_difference(const std::vector<std::uint64_t>& all,
                             const std::vector<std::size_t>& lengths, const Layout& layout) {
  const std::vector<Summary> summaries = by_rank(all, lengths);
  Summary first;
  std::string first_rank;
  for (std::size_t rank = 0; rank < summaries.size(); ++rank) {
    const Summary own = summaries[rank];
    if (is_refusal(own)) continue;
    const std::string name = "rank " + std::to_string(rank);
    if (first_rank.empty()) {
      first = own;
      first_rank = name;
    }
    if (own.size() != first.size()) {
      return first_rank + " has a state of " + entries(first.size()) + ", " + name + " one of " +
             entries(own.size()) + kAdvice;
    }
    if (std::string found = difference(first, first_rank, own, name, layout); !found.empty())
      return found;
  }
  return {};
}

}  // namespace elastic::runtime
