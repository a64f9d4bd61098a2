#pragma once

#include <string>
#include <vector>

namespace elastic::testing {

/// Runs device_check, device_moves and device_mistakes, one after another, on so many ranks.
/// Expects that all ends well, with the same results on all ranks.
void device_world(int ranks, const std::vector<std::string>& environment);

}  // namespace elastic::testing
