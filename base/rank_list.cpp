#include "base/rank_list.hpp"

namespace elastic {

std::string rank_list(const std::vector<std::size_t>& ranks) {
  constexpr std::size_t kShortestRange = 3;
  std::vector<std::string> parts;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t end = first + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - first < kShortestRange) end = first + 1;
    parts.push_back(std::to_string(ranks[first]));
    if (end - first > 1) parts.back() += "-" + std::to_string(ranks[end - 1]);
    first = end;
  }
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and" : ",";
    text += " " + parts[i];
  }
  return text;
}

}  // namespace elastic
