#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace elastic::testing {

/// The events of a timeline that has no end yet, or of one that has.
std::vector<nlohmann::json> read_timeline(const std::filesystem::path& path);

/// The timelines `trace.<worker>.json` in a folder.
std::vector<std::filesystem::path> timelines_in(const std::filesystem::path& folder);

/// The slices with this name.
std::vector<nlohmann::json> slices(const std::vector<nlohmann::json>& events,
                                   const std::string& name);

/// Two slices of one row that overlap without one being inside of the other, as text; empty if
/// there are none.
std::string badly_nested(const std::vector<nlohmann::json>& events);

}  // namespace elastic::testing
