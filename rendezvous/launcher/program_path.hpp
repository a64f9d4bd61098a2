#pragma once

#include <string>

#include "base/status.hpp"

namespace elastic::launcher {

/// Finds `program` as a shell would: as it is when it contains a slash, otherwise in the
/// colon-separated `search_path`. kInvalidArgument says that it is missing or not executable.
Result<std::string> find_program(const std::string& program, const std::string& search_path);

}  // namespace elastic::launcher
