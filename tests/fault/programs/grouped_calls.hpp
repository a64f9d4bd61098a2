#pragma once

#include <cstddef>
#include <string>

#include <elastic/elastic.hpp>

namespace elastic::fault {

/// The sums of a grouped call, in words, and its contributors.
struct GroupedOutcome {
  std::string sums;
  Contributors who;
};

/// Reduce_scatters three tensors of different sizes, `elements` together, which have the digit of
/// `slot`. Throws unless all parts are sums over the contributors, and as large as they say.
GroupedOutcome scatter_groups(std::size_t elements, int slot);

/// Allgathers blocks of three tensors, `elements` together, which have the digit of `slot`. Throws
/// unless each tensor has the blocks of the contributors.
GroupedOutcome gather_groups(std::size_t elements, int slot);

}  // namespace elastic::fault
