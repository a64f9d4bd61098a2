#include "benchmarks/allreduce_encryption.hpp"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "benchmarks/child_run.hpp"
#include "benchmarks/host_report.hpp"
#include "benchmarks/program_files.hpp"

namespace elastic::bench {

namespace {

constexpr std::chrono::milliseconds kComparisonDeadline{600000};

/// The rows of one job's report.
Result<nlohmann::json> measure(const ProgramFiles& files, const AllreduceOptions& options,
                               std::size_t size, bool encrypt) {
  ScratchFolder folder;
  if (Status status = ScratchFolder::make(folder); !status.ok()) return status;
  AllreduceOptions one = options;
  one.sizes = SizeRange{.min = size, .max = size};
  one.json = (folder.path() / "report").string();
  const std::string np = std::to_string(options.np);
  std::vector<std::string> command{files.elasticrun.string(), "-np", np, "--min-np", np,
                                   "--max-restarts",          "0"};
  if (encrypt) command.emplace_back("--encrypt");
  command.push_back(files.self.string());
  for (auto& argument : rank_arguments(one)) command.push_back(std::move(argument));
  if (Status ended = run_child(command, folder.path() / "output", kComparisonDeadline);
      !ended.ok()) {
    return ended;
  }
  std::ifstream file(one.json);
  nlohmann::json rows = nlohmann::json::parse(file).at("results");
  if (rows.at(0).at("encrypt") == encrypt) return rows;
  return Status(Code::kInvalidArgument,
                "ELASTIC_ENCRYPT is set in the environment, so that there is nothing to compare: "
                "unset it");
}

double number(const nlohmann::json& rows, const char* column) {
  return rows.at(0).at(column).get<double>();  // the result in another tensor
}

void print_line(const nlohmann::json& plain, const nlohmann::json& encrypted) {
  const double ratio = number(encrypted, "median_us") / number(plain, "median_us");
  std::printf("  %12.0f %12.1f %10.3f %12.1f %10.3f %7.2f\n", number(plain, "bytes"),
              number(plain, "median_us"), number(plain, "busbw_gbs"),
              number(encrypted, "median_us"), number(encrypted, "busbw_gbs"), ratio);
  std::fflush(stdout);
}

}  // namespace

Status run_encryption_cost(const AllreduceOptions& options) {
  auto files = program_files();
  if (!files.ok()) return files.status();
  std::printf("# elastic allreduce: %d ranks, transport tcp, in the clear and under TLS\n",
              options.np);
  std::printf("# %12s %12s %10s %12s %10s %7s\n", "size", "clear", "busbw", "TLS", "busbw",
              "ratio");
  std::printf("# %12s %12s %10s %12s %10s %7s\n", "(B)", "(us)", "(GB/s)", "(us)", "(GB/s)", "");
  nlohmann::json all = nlohmann::json::array();
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
  if (options.json.empty()) return {};
  return write_report(options.json, options.command, all);
}

}  // namespace elastic::bench
