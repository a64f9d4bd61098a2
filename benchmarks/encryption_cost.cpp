#include "benchmarks/encryption_cost.hpp"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "benchmarks/child_run.hpp"
#include "benchmarks/collective_plot.hpp"
#include "benchmarks/command_line.hpp"
#include "benchmarks/program_files.hpp"
#include "benchmarks/report_files.hpp"

namespace elastic::bench {

namespace {

constexpr std::chrono::milliseconds kComparisonDeadline{600000};

/// The rows of one job's report.
Result<nlohmann::ordered_json> measure(const ProgramFiles& files, const CollectiveOptions& options,
                                       std::size_t size, bool encrypt) {
  ScratchFolder folder;
  if (Status status = ScratchFolder::make(folder); !status.ok()) return status;
  const std::string report = (folder.path() / "report").string();
  const std::string bytes = std::to_string(size);
  const std::string np = std::to_string(options.np);
  std::vector<std::string> command{files.elasticrun.string(), "-np", np, "--min-np", np,
                                   "--max-restarts",          "0"};
  if (encrypt) command.emplace_back("--encrypt");
  command.push_back(files.self.string());
  for (auto& argument : rank_arguments(options)) command.push_back(std::move(argument));
  // The launcher says it.
  command.insert(command.end(), {"--encrypt=false", "--transport", "tcp"});
  command.insert(command.end(), {"-b", bytes, "-e", bytes, "--json", report});
  if (Status ended = run_child(command, folder.path() / "output", kComparisonDeadline);
      !ended.ok()) {
    return ended;
  }
  std::ifstream file(report);
  nlohmann::ordered_json rows = nlohmann::ordered_json::parse(file).at("results");
  if (rows.at(0).at("encrypt") == encrypt) return rows;
  return Status(Code::kInvalidArgument,
                "ELASTIC_ENCRYPT is set in the environment, so that there is nothing to compare: "
                "unset it");
}

double number(const nlohmann::ordered_json& rows, const char* column) {
  return rows.at(0).at(column).get<double>();  // out of place, where there is that
}

void print_line(const nlohmann::ordered_json& plain, const nlohmann::ordered_json& encrypted) {
  const double ratio = number(encrypted, "median_us") / number(plain, "median_us");
  std::printf("  %12.0f %12.1f %10.3f %12.1f %10.3f %7.2f\n", number(plain, "bytes"),
              number(plain, "median_us"), number(plain, "busbw_gbs"),
              number(encrypted, "median_us"), number(encrypted, "busbw_gbs"), ratio);
  std::fflush(stdout);
}

}  // namespace

Status run_encryption_cost(const CollectiveOptions& options) {
  auto files = program_files();
  if (!files.ok()) return files.status();
  std::printf("# elastic %s: %d ranks, transport tcp, in the clear and under TLS\n",
              options.operation.c_str(), options.np);
  std::printf("# %12s %12s %10s %12s %10s %7s\n", "size", "clear", "busbw", "TLS", "busbw",
              "ratio");
  std::printf("# %12s %12s %10s %12s %10s %7s\n", "(B)", "(us)", "(GB/s)", "(us)", "(GB/s)", "");
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const std::size_t size : sizes_of(options.sizes)) {
    auto plain = measure(files.value(), options, size, false);
    if (!plain.ok()) return plain.status();
    auto encrypted = measure(files.value(), options, size, true);
    if (!encrypted.ok()) return encrypted.status();
    print_line(plain.value(), encrypted.value());
    for (const auto& rows : {plain.value(), encrypted.value()}) {
      all.insert(all.end(), rows.begin(), rows.end());
    }
  }
  return write_reports(options, all, [&] { return collective_plot(all); });
}

}  // namespace elastic::bench
