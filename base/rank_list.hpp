#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace elastic {

/// "rank 1", "ranks 1 and 3", "ranks 0-4, 6 and 9": for messages to users. `ranks` ascend.
std::string rank_list(const std::vector<std::size_t>& ranks);

}  // namespace elastic
