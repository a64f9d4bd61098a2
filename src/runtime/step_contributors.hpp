#pragma once

#include <cstddef>
#include <vector>

#include "elastic/results.hpp"

namespace elastic::runtime {

/// Which tensors of a step have to be summed again, by index, when each has the contributors that
/// `all` says: those without the contributors of the latest view. A view within a step has fewer
/// members than the one before, or the same. Pure: all ranks have the same list, and decide alike.
std::vector<std::size_t> to_sum_again(const std::vector<Contributors>& all);

/// The contributors of the latest view in the list, which is not empty.
const Contributors& latest(const std::vector<Contributors>& all);

}  // namespace elastic::runtime
