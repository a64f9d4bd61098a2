#pragma once

#include <cstddef>
#include <cstdint>

namespace dynamic_sgd {

/// How many workers train in which epoch (from 0): one at first, then `workers`, then `shrink_to`.
struct Plan {
  std::uint64_t epochs = 18;
  std::size_t workers = 8;
  std::uint64_t grow_at = 5;     ///< the first epoch of all workers
  std::uint64_t shrink_at = 12;  ///< the first epoch of those that are left
  std::size_t shrink_to = 1;

  std::size_t workers_in(std::uint64_t epoch) const;
};

/// Throws std::invalid_argument, naming what is wrong and what may be given, unless the changes
/// come one after the other, within the training, the first up and the second down.
void check(const Plan& plan);

}  // namespace dynamic_sgd
