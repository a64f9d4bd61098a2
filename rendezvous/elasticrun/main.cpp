#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "base/config/environment.hpp"
#include "base/config/options.hpp"
#include "base/config/slurm_step.hpp"
#include "base/secret.hpp"
#include "rendezvous/hosts/address_toward.hpp"
#include "rendezvous/hosts/agent_command.hpp"
#include "rendezvous/hosts/host_launcher.hpp"
#include "rendezvous/launcher/build_report.hpp"
#include "rendezvous/launcher/connection_wait.hpp"
#include "rendezvous/launcher/control_command.hpp"
#include "rendezvous/launcher/exit_code.hpp"
#include "rendezvous/launcher/launch_options.hpp"
#include "rendezvous/launcher/launcher.hpp"
#include "rendezvous/launcher/program_path.hpp"

namespace {

using namespace elastic;
using namespace elastic::launcher;

int usage_error(const Status& status) {
  std::fprintf(stderr, "elasticrun: %s\n", status.message().c_str());
  return exit_code::kWrongUsage;
}

/// They name the job of workers that are started without elasticrun.
void warn_of_unused(const EnvironmentMap& environment) {
  std::string names;
  for (const char* name : {"ELASTIC_RENDEZVOUS", "ELASTIC_JOB", "ELASTIC_SECRET_FILE"}) {
    const auto found = environment.find(name);
    if (found == environment.end() || found->second.empty()) continue;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  if (names.empty()) return;
  std::fprintf(
      stderr,
      "elasticrun: not used: %s; elasticrun starts a server of its own, and --job names its "
      "job. To join a job that is running, start the program without elasticrun\n",
      names.c_str());
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

Result<Secret> secret_of(const LaunchOptions& options) {
  if (options.secret_stdin) return read_secret_line(STDIN_FILENO, "--secret-stdin");
  if (!options.secret_file.empty()) return read_secret_file(options.secret_file);
  return random_secret();
}

/// Runs a job, and another one where it has failed after it had begun, as often as the options say.
template <typename RunJob>
int run_jobs(const LaunchOptions& options, const RunJob& run_job) {
  for (int restarts = 1;; ++restarts) {
    const JobEnd end = run_job();
    if (!end.may_begin_anew || restarts > options.max_job_restarts) return end.exit_code;
    std::fprintf(stderr,
                 "elasticrun: starting the job anew (restart %d of %d of --max-job-restarts)\n",
                 restarts, options.max_job_restarts);
  }
}

int launch_on_hosts(const LaunchOptions& options, const EnvironmentMap& environment) {
  warn_of_unused(environment);
  const auto secret = secret_of(options);
  if (!secret.ok()) return usage_error(secret.status());
  return run_jobs(options,
                  [&] { return hosts::HostLauncher(options, secret.value(), environment).run(); });
}

/// Options of the command line that are variables of the workers.
void add_variables(const LaunchOptions& options, EnvironmentMap& environment) {
  if (!options.network.empty()) environment["ELASTIC_NETWORK"] = options.network;
  if (!options.data_ports.empty()) environment["ELASTIC_DATA_PORTS"] = options.data_ports;
}

int join_by_file(LaunchOptions options, const std::string& program,
                 const EnvironmentMap& environment) {
  const auto contact = await_connection_file(options.connection_file, options.start_timeout);
  if (!contact.ok()) {
    std::fprintf(stderr, "elasticrun: %s\n", contact.status().message().c_str());
    return contact.status().code() == Code::kUnavailable ? exit_code::kNoServer
                                                         : exit_code::kWrongUsage;
  }
  if (options.encrypt && !contact.value().encrypt) {
    return usage_error(
        Status(Code::kInvalidArgument,
               "--encrypt or ELASTIC_ENCRYPT asks for encryption, and the server of " +
                   options.connection_file + " has none; start the server with --encrypt"));
  }
  if (!options.job.empty() && options.job != contact.value().job) {
    return usage_error(Status(Code::kInvalidArgument,
                              "--job " + options.job + ": " + options.connection_file +
                                  " is of job " + contact.value().job + "; leave --job out"));
  }
  options.join = contact.value().address;
  options.job = contact.value().job;
  options.encrypt = contact.value().encrypt;
  return Launcher(options, contact.value().secret, program, environment).run().exit_code;
}

int launch(LaunchOptions options, EnvironmentMap environment) {
  add_variables(options, environment);
  const auto chosen = hosts::chosen_variables(options.hosts.variables, environment);
  if (!chosen.ok()) return usage_error(chosen.status());
  EnvironmentMap of_workers = environment;
  for (const auto& [name, value] : chosen.value()) of_workers[name] = value;
  // Every worker would end with the same error.
  if (const auto valid = resolve({}, of_workers); !valid.ok()) return usage_error(valid.status());
  options.encrypt = options.encrypt || wants_encryption(of_workers);
  if (options.hosts.given()) return launch_on_hosts(options, environment);
  environment = std::move(of_workers);
  const auto search_path = environment.find("PATH");
  auto program = find_program(options.command.front(),
                              search_path == environment.end() ? "" : search_path->second);
  if (!program.ok()) return usage_error(program.status());
  if (!options.joins()) warn_of_unused(environment);
  if (options.host.empty()) options.host = host_name();
  if (!options.connection_file.empty()) {
    return join_by_file(std::move(options), program.value(), environment);
  }
  if (!options.reached_from.empty())
    options.reached_at = hosts::find_address_toward(options.reached_from);
  const auto secret = secret_of(options);
  if (!secret.ok()) return usage_error(secret.status());
  return run_jobs(options, [&] {
    return Launcher(options, secret.value(), program.value(), environment).run();
  });
}

int run(const std::vector<std::string>& arguments) {
  const EnvironmentMap environment = read_environment();
  if (!arguments.empty() && arguments.front() == "ctl") {
    return run_control_command({arguments.begin() + 1, arguments.end()}, environment);
  }
  auto request = parse_launch_options(arguments, read_slurm_step(environment));
  if (!request.ok()) return usage_error(request.status());
  if (const auto* text = std::get_if<PrintAndExit>(&request.value())) {
    std::fputs(text->text.c_str(), stdout);
    return 0;
  }
  if (std::holds_alternative<CheckBuild>(request.value())) {
    std::fputs(build_report(environment).c_str(), stdout);
    return 0;
  }
  return launch(std::get<LaunchOptions>(std::move(request).value()), environment);
}

/// Otherwise a socket, or a file of a worker, could have the number of a stream that is closed.
/// Nothing can be written to it either way, which is to be noticed.
bool keep_standard_streams() {
  int opened = STDIN_FILENO;
  while (opened >= 0 && opened <= STDERR_FILENO) opened = ::open("/dev/null", O_RDONLY);
  if (opened >= 0) ::close(opened);
  return opened >= 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (!keep_standard_streams()) return 1;
  try {
    const int code = run({argv + 1, argv + argc});
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    std::fprintf(stderr, "elasticrun: cannot write to stdout: %s\n", std::strerror(errno));
    return code == 0 ? 1 : code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "elasticrun: %s\n", error.what());
    return 1;
  }
}
