#pragma once

#include <filesystem>
#include <string>

#include "base/status.hpp"

namespace elastic::bench {

/// Fails early, before anything is measured, when the file that `option` names could not be
/// written; leaves what is in it.
Status check_writable(const std::string& option, const std::filesystem::path& file);

/// Replaces what is in the file. kUnavailable names the option.
Status write_file(const std::string& option, const std::filesystem::path& file,
                  const std::string& text);

}  // namespace elastic::bench
