#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/collective.hpp"
#include "benchmarks/statistics.hpp"

namespace elastic::bench {

/// What one placement of one backend came to, at one size.
struct Cell {
  Summary time_us;
  double algbw = 0;                   ///< GB/s
  double busbw = 0;                   ///< GB/s
  std::optional<std::int64_t> wrong;  ///< elements of all ranks; nothing where it was not checked
  double ratio = 1;                   ///< median time by that of the backend compared with
};

/// One backend at one size. What the operation does not offer is empty.
struct BackendResult {
  std::string backend;
  std::array<std::optional<Cell>, 2> cells;  ///< by Placement

  const std::optional<Cell>& at(Placement placement) const {
    return cells[static_cast<std::size_t>(placement)];
  }
};

/// All backends at one size.
struct SizeResult {
  std::size_t count = 0;  ///< elements of the whole tensor
  std::vector<BackendResult> backends;
};

/// Index of the backend that the others are compared with: "native", or else the first.
std::size_t compared_with(const std::vector<std::string>& labels);

}  // namespace elastic::bench
