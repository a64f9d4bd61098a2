#pragma once

#include <optional>
#include <string>

#include "base/status.hpp"

namespace elastic::notice {

/// The text in the file of `--notice file:PATH`. None: there is no such file. It never
/// blocks, and reads some kilobytes at most. kInvalidArgument: it is no regular file, or too long;
/// kUnavailable: it cannot be read.
Result<std::optional<std::string>> read_notice_file(const std::string& path);

}  // namespace elastic::notice
