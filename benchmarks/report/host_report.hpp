#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "base/status.hpp"
#include "benchmarks/report/network_record.hpp"

namespace elastic::bench {

/// Writes a JSON object: `host` (hostname, cores, cpu, kernel), `network` (of this host, see
/// NetworkRecord), `commit`, `command` and `results`.
Status write_report(const std::filesystem::path& file, const std::string& command,
                    const nlohmann::ordered_json& results, const NetworkRecord& network);

}  // namespace elastic::bench
