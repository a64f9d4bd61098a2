#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/descriptor_limit.hpp"
#include "base/log.hpp"
#include "benchmarks/command_line_options.hpp"
#include "benchmarks/report/host_report.hpp"
#include "benchmarks/report/output_file.hpp"
#include "benchmarks/swarm/swarm_command_line.hpp"
#include "benchmarks/swarm/swarm_phases.hpp"
#include "benchmarks/swarm/swarm_report.hpp"

namespace {

using namespace elastic;
using namespace elastic::bench;

/// Beside the connections: the standard streams, the files of Asio, the pipe of the server.
constexpr std::size_t kOtherDescriptors = 32;

Status check_descriptors(const SwarmOptions& options) {
  const std::size_t limit = raise_descriptor_limit();
  const std::size_t needed = static_cast<std::size_t>(options.workers) + kOtherDescriptors;
  if (needed <= limit) return {};
  return Status(Code::kInvalidArgument,
                "--workers " + std::to_string(options.workers) + " needs " +
                    std::to_string(needed) + " descriptors, and this process may have " +
                    std::to_string(limit) + "; raise the hard limit (ulimit -Hn), or start fewer");
}

Status run(const SwarmOptions& options, const std::string& command) {
  if (Status status = check_descriptors(options); !status.ok()) return status;
  if (!options.json.empty()) {
    if (Status status = check_writable("--json", options.json); !status.ok()) return status;
  }
  log::set_level(LogLevel::kError);  // a line of each worker about each loss of the server
  const NetworkRecord network;
  const auto times = measure_swarm(options);
  if (!times.ok()) return times.status();
  std::fputs(table_of(times.value()).c_str(), stdout);
  if (options.json.empty()) return {};
  return write_report(options.json, command, nlohmann::ordered_json::array({row_of(times.value())}),
                      network);
}

}  // namespace

int main(int argc, char** argv) try {
  const SwarmCommandLine line = parse_swarm(argc, argv);
  if (line.exit_code) {
    std::fputs(line.text.c_str(), *line.exit_code == 0 ? stdout : stderr);
    return *line.exit_code;
  }
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const Status done = run(line.options, command_text("elastic-swarm", arguments));
  if (done.ok()) return 0;
  std::fprintf(stderr, "elastic-swarm: %s\n", done.message().c_str());
  return done.code() == Code::kInvalidArgument ? 2 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "elastic-swarm: %s\n", error.what());
  return 1;
}
