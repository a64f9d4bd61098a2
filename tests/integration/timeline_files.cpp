#include "integration/timeline_files.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

#include "integration/job.hpp"

namespace elastic::testing {

std::vector<nlohmann::json> read_timeline(const std::filesystem::path& path) {
  std::string text = read_file(path);
  if (!text.ends_with("]\n")) {
    text.erase(text.rfind(",\n"));  // with what a killed worker was writing
    text += "]";
  }
  return nlohmann::json::parse(text).get<std::vector<nlohmann::json>>();
}

std::vector<std::filesystem::path> timelines_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("trace.") && name.ends_with(".json")) found.push_back(entry.path());
  }
  return found;
}

std::vector<nlohmann::json> slices(const std::vector<nlohmann::json>& events,
                                   const std::string& name) {
  std::vector<nlohmann::json> found;
  std::copy_if(events.begin(), events.end(), std::back_inserter(found), [&](const auto& event) {
    return event.at("ph") == "X" && event.at("name") == name;
  });
  return found;
}

std::string badly_nested(const std::vector<nlohmann::json>& events) {
  struct Slice {
    std::int64_t begin;
    std::int64_t end;
    std::string text;
  };
  const auto nanoseconds = [](const nlohmann::json& microseconds) {
    return std::llround(microseconds.get<double>() * 1000);
  };
  std::map<int, std::vector<Slice>> rows;
  for (const nlohmann::json& event : events) {
    if (event.at("ph") != "X") continue;
    const std::int64_t begin = nanoseconds(event.at("ts"));
    rows[event.at("tid")].push_back({begin, begin + nanoseconds(event.at("dur")), event.dump()});
  }
  for (auto& row : rows) {
    std::vector<Slice> open;
    std::stable_sort(row.second.begin(), row.second.end(), [](const Slice& a, const Slice& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    for (const Slice& slice : row.second) {
      while (!open.empty() && open.back().end <= slice.begin) open.pop_back();
      if (!open.empty() && open.back().end < slice.end) return open.back().text + "\n" + slice.text;
      open.push_back(slice);
    }
  }
  return {};
}

}  // namespace elastic::testing
