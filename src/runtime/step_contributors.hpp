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

/// Brings the tensors of a step to the same contributors:
/// 1. Wait for all tensors.
/// 2. Those without the contributors of the latest view are summed again, from their inputs.
/// 3. Repeat, as another member may have died meanwhile. Each repetition takes a death.
///
/// `finish` waits for all tensors, and replaces a list by their contributors; it returns whether
/// all have a result. `again` starts the sum of the tensor with this index. \returns whether all
/// have the contributors of the latest view; not so once a tensor has failed.
template <typename Finish, typename Again>
bool sum_over_the_same(std::vector<Contributors>& contributors, const Finish& finish,
                       const Again& again) {
  while (finish(contributors)) {
    const std::vector<std::size_t> indices = to_sum_again(contributors);
    if (indices.empty()) return true;
    for (const std::size_t index : indices) again(index);
  }
  return false;
}

}  // namespace elastic::runtime
