#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/status.hpp"

namespace elastic::bench {

/// Fails early, before anything is measured, when a report could not be written.
Status check_writable(const std::filesystem::path& file);

/// Writes one object: `host` (hostname, cores, cpu, kernel), `commit`, `command` and `results`.
Status write_report(const std::filesystem::path& file, const std::string& command,
                    const nlohmann::json& results);

}  // namespace elastic::bench
