#pragma once

#include <string>
#include <vector>

#include "base/status.hpp"

namespace elastic::bench {

/// Replaces this process by an elasticrun that starts `np` ranks of this program with `arguments`.
/// Returns only on failure.
Status start_ranks(int np, const std::vector<std::string>& arguments);

}  // namespace elastic::bench
