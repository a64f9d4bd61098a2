#pragma once

namespace elastic::coordinator {

/// Ranks that follow each other: `count` of them, from `first` on.
struct RankRange {
  int first = 0;
  int count = 1;

  int end() const { return first + count; }
  bool holds(const RankRange& other) const { return other.first >= first && other.end() <= end(); }
  bool operator==(const RankRange&) const = default;
};

}  // namespace elastic::coordinator
