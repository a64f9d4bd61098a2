#pragma once

#include <string>
#include <vector>

#include "base/status.hpp"
#include "collectives/model/network.hpp"

namespace elastic::model {

/// The networks in `folder`, by name, sorted: its files NAME.json.
std::vector<std::string> networks_in(const std::string& folder);

/// Reads the network `name_or_path`: a path if it has a slash or ends with ".json", otherwise the
/// name of one in `folder`. kInvalidArgument names the file, the line and the field, or the known
/// names.
Result<Network> read_network(const std::string& name_or_path, const std::string& folder);

/// Reads the text of a file. `file` is its name in messages, and without ".json" that of the
/// network.
Result<Network> parse_network(const std::string& text, const std::string& file);

}  // namespace elastic::model
