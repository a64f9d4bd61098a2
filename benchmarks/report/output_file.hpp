#pragma once

#include <filesystem>
#include <string>

#include "base/status.hpp"

namespace elastic::bench {

/// Fails if the file that `option` names cannot be written, so that a measurement fails before it
/// begins. Leaves the content of the file.
Status check_writable(const std::string& option, const std::filesystem::path& file);

/// Replaces the content of the file. kUnavailable names the option.
Status write_file(const std::string& option, const std::filesystem::path& file,
                  const std::string& text);

}  // namespace elastic::bench
