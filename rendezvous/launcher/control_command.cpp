#include "rendezvous/launcher/control_command.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <optional>

#include <CLI/CLI.hpp>

#include "base/config/environment.hpp"
#include "base/nearest_name.hpp"
#include "base/openssl_check.hpp"
#include "base/printable.hpp"
#include "rendezvous/client/control_client.hpp"
#include "rendezvous/launcher/job_file.hpp"
#include "rendezvous/launcher/launch_options.hpp"
#include "rendezvous/launcher/private_folder.hpp"
#include "rendezvous/launcher/status_table.hpp"
#include "rendezvous/launcher/top.hpp"
#include "rendezvous/launcher/wrong_argument.hpp"
#include "rendezvous/monitoring/status_json.hpp"
#include "rendezvous/protocol/connection_file.hpp"

namespace elastic::launcher {

namespace {

constexpr int kRefusedExit = 1;
constexpr int kUsageExit = 2;
constexpr Milliseconds kTimeout{5000};
constexpr const char* kOddAnswer = "the server gave an answer that does not fit";
const std::string kElsewhere =
    "; for one whose server runs elsewhere, or was started by hand, give --rendezvous, --job and "
    "--secret-file, or set ELASTIC_RENDEZVOUS, ELASTIC_JOB and ELASTIC_SECRET_FILE";

struct Job {
  std::string name;
  std::string address;
  Secret secret;
  bool encrypt = false;
};

struct ControlOptions {
  std::string job;
  bool job_given = false;  ///< as an option, and not by the environment
  std::string rendezvous;
  std::string secret_file;
  std::string connection_file;
  bool encrypt = false;
  bool json = false;
  bool once = false;
  rendezvous::Message request;
};

/// Options that are not given are taken from the variables of workers that are started by hand. A
/// worker of elasticrun has no ELASTIC_SECRET_FILE; its job is found on this machine.
void take_variables(ControlOptions& options,
                    const std::map<std::string, std::string>& environment) {
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  const auto take = [](std::string& option, const std::string& variable) {
    if (option.empty()) option = variable;
  };
  take(options.secret_file, value("ELASTIC_SECRET_FILE"));
  const bool another_job = !options.job.empty() && options.job != value("ELASTIC_JOB");
  if (!options.secret_file.empty() && !another_job) {
    take(options.rendezvous, value("ELASTIC_RENDEZVOUS"));
  }
  take(options.job, value("ELASTIC_JOB"));
}

int fail(const Status& status) {
  std::fprintf(stderr, "elasticrun ctl: %s\n", printable_name(status.message()).c_str());
  return status.code() == Code::kInvalidArgument ? kUsageExit : kRefusedExit;
}

Status choose_one(const std::vector<JobRecord>& jobs) {
  if (jobs.empty()) {
    return Status(Code::kUnavailable, "no job of yours is running on this machine" + kElsewhere);
  }
  std::string names;
  for (const auto& job : jobs) names += " " + job.job;
  return Status(Code::kInvalidArgument, "several jobs are running, choose with --job:" + names);
}

Result<Job> find_running(const std::string& name, const std::string& folder) {
  auto jobs = running_jobs(folder);
  if (!name.empty()) {
    std::erase_if(jobs, [&](const JobRecord& record) { return record.job != name; });
    if (jobs.empty()) {
      return Status(Code::kUnavailable,
                    "job " + name + " is not running on this machine" + kElsewhere);
    }
  }
  if (jobs.size() != 1) return choose_one(jobs);
  return Job{jobs.front().job, jobs.front().address, jobs.front().secret, jobs.front().encrypt};
}

Result<Job> find_job(const ControlOptions& options,
                     const std::map<std::string, std::string>& environment) {
  if (!options.connection_file.empty()) {
    const auto contact = rendezvous::read_connection_file(options.connection_file);
    if (!contact.ok()) return contact.status();
    if (!options.job.empty() && options.job_given && options.job != contact.value().job) {
      return Status(Code::kInvalidArgument, "--job " + options.job + ": " +
                                                options.connection_file + " is of job " +
                                                contact.value().job + "; leave --job out");
    }
    return Job{contact.value().job, contact.value().address, contact.value().secret,
               contact.value().encrypt};
  }
  if (options.rendezvous.empty()) {
    const auto folder = private_folder(environment);
    if (!folder.ok()) return folder.status();
    return find_running(options.job, folder.value());
  }
  if (options.secret_file.empty() || options.job.empty()) {
    return Status(Code::kInvalidArgument,
                  "--rendezvous needs --secret-file and --job as well (ELASTIC_RENDEZVOUS needs "
                  "ELASTIC_SECRET_FILE and ELASTIC_JOB)");
  }
  const auto secret = read_secret_file(options.secret_file);
  if (!secret.ok()) return secret.status();
  return Job{options.job, options.rendezvous, secret.value(),
             options.encrypt || wants_encryption(environment)};
}

/// Adds to the error about a server that was started by hand how it comes back. One of elasticrun
/// ends only with its job.
Status with_way_back(const Status& status, const ControlOptions& options) {
  const bool several = options.rendezvous.find(',') != std::string::npos;
  if (status.code() != Code::kUnavailable || options.rendezvous.empty() || several) return status;
  return Status(status.code(), status.message() +
                                   "; a server that has ended can be started again with the same "
                                   "command, and the training goes on meanwhile");
}

/// Says why `error` refused the arguments.
std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> rest = app.remaining(true);
  const auto option = std::find_if(rest.begin(), rest.end(),
                                   [](const std::string& each) { return each.starts_with("-"); });
  if (option != rest.end()) return unknown_option(app, *option, "elasticrun ctl --help");
  if (!app.get_subcommands().empty()) return error.what();
  const std::string commands =
      "the commands are status, top, add, remove, drain, pardon, dump and stop";
  if (rest.empty()) return "the command is missing; " + commands;
  return "unknown command '" + rest.front() + "'; did you mean " +
         nearest_name(rest.front(), kControlCommands) + "? (" + commands + ")";
}

Result<rendezvous::Message> ask(const Job& job, const rendezvous::Message& request) {
  return rendezvous::request(job.address, job.name, job.secret, request, kTimeout, job.encrypt);
}

/// Whether the server can be asked again later. One of elasticrun ends with its job.
bool may_come_back(const ControlOptions& options,
                   const std::map<std::string, std::string>& environment) {
  return !options.rendezvous.empty() || find_job(options, environment).ok();
}

int watch(const Job& job, const ControlOptions& options,
          const std::map<std::string, std::string>& environment) {
  const auto ask_status = [&]() -> Result<rendezvous::StatusReply> {
    const auto answer = ask(job, rendezvous::StatusRequest{});
    if (!answer.ok()) {
      if (!may_come_back(options, environment)) return Status(Code::kDone, "the job has ended");
      return with_way_back(answer.status(), options);
    }
    const auto* status = std::get_if<rendezvous::StatusReply>(&answer.value());
    if (status == nullptr) return Status(Code::kProtocol, kOddAnswer);
    return *status;
  };
  const Status shown = show_top(ask_status, options.once);
  return shown.ok() ? 0 : fail(shown);
}

int show(const rendezvous::Message& answer, bool json) {
  if (const auto* status = std::get_if<rendezvous::StatusReply>(&answer)) {
    std::fputs((json ? monitoring::status_json(*status) : status_table(*status)).c_str(), stdout);
    return 0;
  }
  if (const auto* done = std::get_if<rendezvous::Done>(&answer)) {
    if (!done->ok) return fail(Status(Code::kRefused, done->text));
    if (!done->text.empty()) std::printf("%s\n", printable_name(done->text).c_str());
    return 0;
  }
  return fail(Status(Code::kProtocol, kOddAnswer));
}

}  // namespace

int run_control_command(const std::vector<std::string>& arguments,
                        const std::map<std::string, std::string>& environment) {
  ControlOptions options;
  int count = 1;
  int rank = 0;
  std::string host;
  double deadline = 120;
  CLI::App app("Looks at a running job, or changes it.", "elasticrun ctl");
  app.add_option("--job", options.job, "Which job, when several are running [ELASTIC_JOB]");
  auto* address = app.add_option("--rendezvous", options.rendezvous,
                                 "host:port of a server elsewhere, or several with commas "
                                 "[ELASTIC_RENDEZVOUS]");
  app.add_option("--secret-file", options.secret_file,
                 "The job's secret, with --rendezvous [ELASTIC_SECRET_FILE]");
  app.add_option("--connection-file", options.connection_file,
                 "Which job, by the file of elastic-rendezvous --connection-file")
      ->excludes(address);
  app.add_flag("--encrypt", options.encrypt, "The job's connections use TLS, with --rendezvous");
  app.require_subcommand(1);
  app.fallthrough();
  auto* status = app.add_subcommand("status", "Show the members and who is waiting");
  status->add_flag("--json", options.json, "As one JSON object");
  auto* top = app.add_subcommand(
      "top", "Show steps, traffic, waiting ranks and events, once a second, until the job ends");
  top->add_flag("--once", options.once, "One frame only");
  auto* add = app.add_subcommand("add", "Start more workers");
  add->add_option("N", count, "How many")->required()->check(CLI::Range(1, 1 << 16));
  auto* remove = app.add_subcommand("remove", "Let one worker leave at the next step boundary");
  remove->add_option("RANK", rank, "Its rank")->required()->check(CLI::Range(0, 1 << 20));
  auto* drain = app.add_subcommand(
      "drain", "Let all workers of a host leave; hosts with room replace them first");
  drain->add_option("HOST", host, "Its name or its number, as ctl status shows them")->required();
  drain
      ->add_option("--deadline", deadline,
                   "Workers that are there after so many seconds are ended [120]")
      ->check(CLI::Range(0.0, 1e6));
  auto* pardon = app.add_subcommand(
      "pardon", "Start workers again on a host that is in quarantine, and forget its failures");
  pardon->add_option("HOST", host, "Its name or its number, as ctl status shows them")->required();
  auto* dump = app.add_subcommand(
      "dump", "Let each worker write its latest operations to a file, which its log names");
  app.add_subcommand("stop", "Stop the job at the next step boundary");
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      std::fputs(app.help("", CLI::AppFormatMode::All).c_str(), stdout);
      return 0;
    }
    return fail(Status(Code::kInvalidArgument, explain(app, error)));
  }
  if (!std::isfinite(deadline)) {  // CLI11 takes nan for a number in any range
    return fail(Status(Code::kInvalidArgument, "--deadline: nan is no number of seconds"));
  }
  options.request = rendezvous::StopRequest{};
  if (status->parsed()) options.request = rendezvous::StatusRequest{};
  if (add->parsed()) options.request = rendezvous::AddRequest{count};
  if (remove->parsed()) options.request = rendezvous::RemoveRequest{rank};
  if (pardon->parsed()) options.request = rendezvous::PardonRequest{host};
  if (dump->parsed()) options.request = rendezvous::DumpRequest{"elasticrun ctl dump"};
  if (drain->parsed()) {
    const auto milliseconds = static_cast<std::int64_t>(deadline * 1000);
    options.request = rendezvous::LimitRequest{host, 0, milliseconds};
  }

  options.job_given = !options.job.empty();
  take_variables(options, environment);
  const auto job = find_job(options, environment);
  if (!job.ok()) return fail(job.status());
  if (const Status checked = check_openssl(job.value().encrypt); !checked.ok()) {
    return fail(checked);
  }
  if (top->parsed()) return watch(job.value(), options, environment);
  const auto answer = ask(job.value(), options.request);
  return answer.ok() ? show(answer.value(), options.json)
                     : fail(with_way_back(answer.status(), options));
}

}  // namespace elastic::launcher
