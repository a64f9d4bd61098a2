#include "benchmarks/report/report_files.hpp"

#include <utility>

#include "benchmarks/report/host_report.hpp"
#include "benchmarks/report/output_file.hpp"

namespace elastic::bench {

namespace {

std::string csv_field(const nlohmann::ordered_json& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return value.dump();
  const std::string text = value.get<std::string>();
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char character : text) quoted += character == '"' ? "\"\"" : std::string(1, character);
  return quoted + "\"";
}

}  // namespace

std::string csv_text(const nlohmann::ordered_json& rows) {
  if (rows.empty()) return "";
  std::string text;
  const char* separator = "";
  for (const auto& [key, value] : rows.front().items()) {
    text += separator + key;
    separator = ",";
  }
  for (const auto& row : rows) {
    separator = "\n";
    for (const auto& [key, value] : row.items()) {
      text += separator + csv_field(value);
      separator = ",";
    }
  }
  text += '\n';
  return text;
}

Status check_writable(const RankOptions& options) {
  for (const auto& [option, file] :
       {std::pair{"--json", options.json}, {"--csv", options.csv}, {"--plot", options.plot}}) {
    if (file.empty()) continue;
    if (Status status = check_writable(option, file); !status.ok()) return status;
  }
  return {};
}

Status write_reports(const RankOptions& options, const NetworkRecord& network,
                     const nlohmann::ordered_json& rows, const std::function<std::string()>& draw) {
  if (!options.json.empty()) {
    Status status = write_report(options.json, options.command, rows, network);
    if (!status.ok()) return status;
  }
  if (!options.csv.empty()) {
    Status status = write_file("--csv", options.csv, csv_text(rows));
    if (!status.ok()) return status;
  }
  return options.plot.empty() ? Status() : write_file("--plot", options.plot, draw());
}

}  // namespace elastic::bench
