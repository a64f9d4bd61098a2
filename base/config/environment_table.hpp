#pragma once

#include <string>

namespace elastic {

/// All environment variables that a worker reads, as tables in Markdown, which docs/environment.md
/// has.
std::string environment_table();

}  // namespace elastic
