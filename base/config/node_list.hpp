#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"

namespace elastic {

/// The names in one of Slurm's lists of nodes, such as "a,rack[1-2]n[08-10,12]", in its order.
/// kInvalidArgument names `source`, the variable, and what is wrong.
Result<std::vector<std::string>> parse_node_list(std::string_view list, const std::string& source);

}  // namespace elastic
