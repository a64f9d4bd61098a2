#include "base/nearest_name.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <vector>

namespace elastic {

namespace {

/// Levenshtein distance: how many letters two names differ in.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

/// Whether `name` is `known` with letters left out, as "rm" is of "remove".
bool abbreviates(std::string_view name, std::string_view known) {
  const auto* next = name.begin();
  for (const char character : known) {
    if (next != name.end() && *next == character) ++next;
  }
  return next == name.end();
}

}  // namespace

const std::string& nearest_name(std::string_view name, std::span<const std::string> known) {
  const auto unlikeness = [name](const std::string& one) {
    return std::tuple(!one.starts_with(name), !abbreviates(name, one), distance(name, one));
  };
  return *std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
    return unlikeness(a) < unlikeness(b);
  });
}

bool is_near(std::string_view name, std::string_view known) {
  if (name.empty()) return false;
  return known.starts_with(name) ||
         distance(name, known) <= std::max<std::size_t>(1, name.size() / 3);
}

}  // namespace elastic
