#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

/// Adasum as its paper states it, flat and hierarchical, on whole vectors in double: what the
/// halves and levels of the library have to come to. Written without them.
namespace elastic::adasum_model {

using Vector = std::vector<double>;

inline Vector of_two(const Vector& a, const Vector& b) {
  const double ab = std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  const double aa = std::inner_product(a.begin(), a.end(), a.begin(), 0.0);
  const double bb = std::inner_product(b.begin(), b.end(), b.begin(), 0.0);
  Vector sum(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum[i] = (aa > 0 ? 1 - ab / (2 * aa) : 1) * a[i] + (bb > 0 ? 1 - ab / (2 * bb) : 1) * b[i];
  }
  return sum;
}

/// Combines the vectors of all ranks. A number of ranks that is no power of two: the first ones
/// combine theirs in pairs until it is.
inline Vector of_all(std::vector<Vector> vectors) {
  const std::size_t left = std::bit_floor(vectors.size());
  for (std::size_t pair = 0; vectors.size() > left; ++pair) {
    vectors[pair] = of_two(vectors[pair], vectors[pair + 1]);
    vectors.erase(vectors.begin() + static_cast<std::ptrdiff_t>(pair) + 1);
  }
  while (vectors.size() > 1) {
    std::vector<Vector> next;
    for (std::size_t i = 0; i < vectors.size(); i += 2) {
      next.push_back(of_two(vectors[i], vectors[i + 1]));
    }
    vectors = std::move(next);
  }
  return vectors.front();
}

/// Combines the averages of hosts, in the order of their first ranks. `hosts`: equal numbers for
/// ranks of one host.
inline Vector of_hosts(const std::vector<Vector>& vectors, const std::vector<int>& hosts) {
  std::vector<Vector> averages;
  for (std::size_t first = 0; first < hosts.size(); ++first) {
    if (std::find(hosts.begin(), hosts.end(), hosts[first]) - hosts.begin() !=
        static_cast<std::ptrdiff_t>(first)) {
      continue;
    }
    Vector& average = averages.emplace_back(vectors[first].size());
    const auto ranks = static_cast<double>(std::count(hosts.begin(), hosts.end(), hosts[first]));
    for (std::size_t rank = first; rank < hosts.size(); ++rank) {
      if (hosts[rank] != hosts[first]) continue;
      for (std::size_t i = 0; i < average.size(); ++i) average[i] += vectors[rank][i] / ranks;
    }
  }
  return of_all(std::move(averages));
}

inline double greatest_magnitude(const std::vector<Vector>& vectors) {
  double greatest = 0;
  for (const Vector& vector : vectors) {
    for (const double value : vector) greatest = std::max(greatest, std::abs(value));
  }
  return greatest;
}

}  // namespace elastic::adasum_model
