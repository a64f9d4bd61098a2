#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/layout.hpp"

namespace elastic::runtime {

/// What a member tells the others of its state, to be compared: for each entry the number of its
/// elements, the same for the hashes of their values, and the commits.
std::vector<std::uint64_t> state_summary(const Layout& layout,
                                         const std::vector<std::uint64_t>& hashes,
                                         std::uint64_t commits);

/// How the first member that differs from rank 0 does so: rank, entry, and the sizes where these
/// differ. `all`: the summaries in rank order, `lengths` their lengths. `layout` is one member's.
/// Empty where all are alike.
std::string state_difference(const std::vector<std::uint64_t>& all,
                             const std::vector<std::size_t>& lengths, const Layout& layout);

}  // namespace elastic::runtime
