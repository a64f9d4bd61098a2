#include "benchmarks/swarm/swarm_command_line.hpp"

#include <filesystem>
#include <sstream>
#include <system_error>

#include <CLI/CLI.hpp>

namespace elastic::bench {

namespace {

constexpr int kUsageError = 2;

std::string server_beside_this_program() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string() : (self.parent_path() / "elastic-rendezvous").string();
}

}  // namespace

SwarmCommandLine parse_swarm(int argc, const char* const* argv) {
  SwarmCommandLine parsed;
  SwarmOptions& options = parsed.options;
  options.server = server_beside_this_program();
  CLI::App app(
      "Thousands of workers without a data plane in one process, with the real client, against a "
      "real rendezvous server: how long it takes them to form a job, to lose members, to lose the "
      "server, and to admit joiners");
  app.add_option("--workers", options.workers, "Workers of the job [1000]")
      ->check(CLI::Range(2, 1 << 20));
  app.add_option("--deaths", options.deaths,
                 "Workers that die at once, and joiners that come later [100]")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--idle-s", options.idle_s,
                 "Seconds for which the server's processor time is counted [5]")
      ->check(CLI::Range(1, 3600));
  app.add_option("--server", options.server, "Path of elastic-rendezvous [beside this program]")
      ->check(CLI::ExistingFile);
  app.add_option("--json", options.json, "File to write the results to");
  try {
    app.parse(argc, argv);
    if (options.deaths > options.workers - 2) {
      throw CLI::ValidationError("--deaths", "of " + std::to_string(options.workers) +
                                                 " workers at most " +
                                                 std::to_string(options.workers - 2) + " can die");
    }
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    parsed.exit_code = app.exit(error, out, out) == 0 ? 0 : kUsageError;
    parsed.text = out.str();
  }
  return parsed;
}

}  // namespace elastic::bench
