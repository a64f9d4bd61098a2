#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/collective/collective.hpp"
#include "benchmarks/report/statistics.hpp"

namespace elastic::bench {

/// The result of one backend at one size in one placement.
struct Cell {
  Summary time_us;
  double algbw = 0;                   ///< GB/s
  double busbw = 0;                   ///< GB/s
  std::optional<std::int64_t> wrong;  ///< elements of all ranks; empty if not checked
  double ratio = 1;                   ///< median time divided by that of the reference backend
};

/// The results of one backend at one size. Placements that the operation does not offer are empty.
struct BackendResult {
  std::string backend;
  std::array<std::optional<Cell>, 2> cells;  ///< by Placement

  const std::optional<Cell>& at(Placement placement) const {
    return cells[static_cast<std::size_t>(placement)];
  }
};

/// The results of all backends at one size.
struct SizeResult {
  std::size_t count = 0;  ///< elements of the whole tensor
  std::vector<BackendResult> backends;
};

/// The index of the reference backend for ratios: "native" if measured, otherwise the first.
std::size_t compared_with(const std::vector<std::string>& labels);

}  // namespace elastic::bench
