#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "base/status.hpp"

namespace elastic::bench {

/// Writes one object: `host` (hostname, cores, cpu, kernel), `commit`, `command` and `results`.
Status write_report(const std::filesystem::path& file, const std::string& command,
                    const nlohmann::ordered_json& results);

}  // namespace elastic::bench
