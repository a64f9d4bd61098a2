#include "rendezvous/launcher/launch_options.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <limits>

#include <CLI/CLI.hpp>

#include "base/cli11_arguments.hpp"
#include "base/config/environment_table.hpp"
#include "base/handshake.hpp"
#include "base/network_choice.hpp"
#include "base/port_range.hpp"
#include "rendezvous/launcher/build_report.hpp"
#include "rendezvous/launcher/control_command.hpp"
#include "rendezvous/launcher/wrong_argument.hpp"
#include "rendezvous/protocol/connection.hpp"
#include "rendezvous/protocol/without_brackets.hpp"

namespace elastic::launcher {

namespace {

Status invalid(const std::string& message) {
  return Status(Code::kInvalidArgument, message);
}

Milliseconds milliseconds(double seconds) {
  return Milliseconds(static_cast<Milliseconds::rep>(seconds * 1000));
}

/// On one machine: far more than it has cores or descriptors for.
constexpr int kMostWorkers = 4096;
constexpr int kMostHosts = 20000;      ///< slots of each have a range of numbers of their own
constexpr long kLongestMs = 86400000;  ///< a day
/// Workers wait for a day at the longest.
constexpr long kLongestStartMs = kLongestMs - LaunchOptions::kStartMargin.count();

/// Users of a running job may have left out ctl, unless it is the name of a program here.
std::string missing_np(const std::string& program) {
  const std::string missing = "-np is missing: how many workers to start";
  std::error_code unreadable;
  if (std::find(kControlCommands.begin(), kControlCommands.end(), program) ==
          kControlCommands.end() ||
      std::filesystem::exists(program, unreadable)) {
    return missing;
  }
  return missing + "; or did you mean elasticrun ctl " + program + "?";
}

Status check(const LaunchOptions& options) {
  const int fewest = !options.joins() && !options.hosts.given() ? 1 : 0;
  if (options.np < fewest) {
    return invalid("-np must be at least " + std::to_string(fewest) + ", not " +
                   std::to_string(options.np));
  }
  if (options.np > kMostWorkers) {
    return invalid("-np must be at most " + std::to_string(kMostWorkers) + ", not " +
                   std::to_string(options.np));
  }
  if (options.min_np < 1) {
    return invalid("--min-np must be at least 1, not " + std::to_string(options.min_np));
  }
  const std::string range = "--min-np " + std::to_string(options.min_np) + " and --max-np " +
                            std::to_string(options.max_np);
  const bool any_number = options.hosts.given() && options.max_np == 0;
  if (options.min_np > options.max_np && !any_number) {
    return invalid("--min-np is greater than --max-np: " + range);
  }
  const bool as_slots = options.np == 0;  // of --join and of the list of hosts
  if (!as_slots && (options.job_np < options.min_np || options.job_np > options.max_np)) {
    return invalid("-np " + std::to_string(options.np) +
                   (options.job_np == options.np
                        ? ""
                        : ", with the other tasks of the step " + std::to_string(options.job_np) +
                              " workers,") +
                   " is not between " + range);
  }
  if (options.max_restarts < 0) return invalid("--max-restarts must not be negative");
  if (options.max_job_restarts < 0) return invalid("--max-job-restarts must not be negative");
  if (options.evict_after.count() < 1) return invalid("--evict-after-ms must be at least 1");
  if (options.max_join_stall.count() < 1) return invalid("--max-join-stall-ms must be at least 1");
  if (options.disconnect_grace.count() < 1) {
    return invalid("--disconnect-grace-ms must be at least 1");
  }
  if (options.outage_window.count() < 1) return invalid("--outage-window-ms must be at least 1");
  return options.job.empty() ? Status() : check_job_id(options.job);
}

/// An empty one is mostly a variable of a script that is not set.
Status check_not_empty(const CLI::App& app) {
  for (const char* option :
       {"--hosts", "--hostfile", "--discover", "--ssh", "--env", "--job", "--join",
        "--connection-file", "--secret-file", "--host-name", "--bind", "--http", "--output-dir",
        "--event-log", "--prepare", "--notice"}) {
    const auto& given = app.get_option(option)->results();
    if (std::find(given.begin(), given.end(), "") == given.end()) continue;
    return invalid(std::string(option) + " is empty: give its value, or leave the option out");
  }
  return {};
}

/// A number that was given, and is the default which means another number.
Status check_not_zero(const CLI::App& app, const LaunchOptions& options) {
  for (const auto& [option, value] :
       {std::pair{"--max-np", options.max_np}, std::pair{"--slots", options.slots}}) {
    if (app.get_option(option)->count() == 0 || value > 0) continue;
    return invalid(std::string(option) + " must be at least 1, not " + std::to_string(value));
  }
  return {};
}

Status check_without_hosts(const CLI::App& app) {
  for (const char* of_hosts : {"--ssh", "--ssh-args", "--placement"}) {
    if (app.get_option(of_hosts)->count() == 0) continue;
    return invalid(std::string(of_hosts) + " needs --hosts, --hostfile or --discover");
  }
  return {};
}

Status check_addresses(const std::string& list) {
  const auto addresses = rendezvous::parse_addresses(list);
  if (!addresses.ok()) return addresses.status().within("--join");
  return {};
}

/// A job that runs already has no use for the options of its server.
Status check_joins(const CLI::App& app, const LaunchOptions& options) {
  const std::string with = options.join.empty() ? "--connection-file" : "--join";
  for (const char* of_server :
       {"--bind", "--port", "--event-log", "--http", "--min-np", "--max-np", "--max-job-restarts",
        "--evict-after-ms", "--max-join-stall-ms", "--disconnect-grace-ms", "--outage-window-ms",
        "--below-minimum-timeout-ms", "--quarantine-seconds"}) {
    if (app.get_option(of_server)->count() == 0) continue;
    return invalid(std::string(of_server) +
                   " is for the job's server: give it there, and not with " + with);
  }
  const bool has_secret = !options.secret_file.empty() || options.secret_stdin;
  if (!options.connection_file.empty() && (has_secret || !options.join.empty())) {
    return invalid(
        "--connection-file says where the server is, and has the secret: leave out --join, "
        "--secret-file and --secret-stdin");
  }
  if (!options.join.empty() && !has_secret) {
    return invalid("--join needs the job's secret: --secret-file FILE or --secret-stdin");
  }
  return options.join.empty() ? Status() : check_addresses(options.join);
}

Status check_host(const CLI::App& app, const LaunchOptions& options) {
  if (options.secret_stdin && !options.secret_file.empty()) {
    return invalid("--secret-file and --secret-stdin: give one of them");
  }
  if (options.np == 0 && options.slots == 0 && options.joins()) {
    return invalid("-np 0 needs --slots: how many workers this host takes");
  }
  if (!options.joins() && (options.number || options.end_with_stdin)) {
    return invalid("--host-number and --end-with-stdin need --join");
  }
  if (options.slots != 0 && options.np > options.slots) {
    return invalid("-np " + std::to_string(options.np) + " is greater than --slots " +
                   std::to_string(options.slots));
  }
  return options.joins() ? check_joins(app, options) : Status();
}

/// The command line as it is parsed, before its numbers and flags become LaunchOptions.
struct CommandLine {
  LaunchOptions options;
  double drain_seconds = 30.0;
  double quarantine_seconds = 60.0;
  double exit_seconds = 300.0;
  int port = 0;
  long evict_after_ms = 500;
  long max_join_stall_ms = 10000;
  long disconnect_grace_ms = 1500;
  long outage_window_ms = 300000;
  long start_timeout_ms = options.start_timeout.count();
  long below_minimum_timeout_ms = options.below_minimum_timeout.count();
  long stall_timeout_ms = 0;
  std::string slurm_folder = ".";
  bool no_slurm = false;
  bool no_prefix = false;
  bool no_terminal = false;
  bool show_version = false;
  bool show_environment = false;
  bool check_build = false;
  std::string placement_name = "spread";
  CLI::Option* placement = nullptr;
  CLI::Option* np = nullptr;
  CLI::Option* max_np = nullptr;
  CLI::Option* stall_timeout = nullptr;
};

// CLI11 writes to the fields of `line`, and lists the options in the order of these functions.

void add_worker_options(CLI::App& app, CommandLine& line) {
  line.np = app.add_option(
      "-n,--np", line.options.np,
      "Workers to start (also -np) [under srun: one for each GPU of the task, or else for each "
      "of its CPUs]");
  line.np->check(whole_number("-np", 1));
  app.add_option("--min-np", line.options.min_np,
                 "With fewer than this the job waits for replacements at its next step, and fails "
                 "where none can come [1: it goes on as long as one worker is left]")
      ->check(whole_number("--min-np", 1));
  line.max_np =
      app.add_option("--max-np", line.options.max_np,
                     "No more workers than this [-np, or --slots if that is more; under "
                     "srun the slots of all tasks; with --hosts and without -np no limit]");
  line.max_np->check(whole_number("--max-np", 1));
  app.add_option("--max-restarts", line.options.max_restarts,
                 "How many dead workers are replaced in the whole job [3]; before the job has "
                 "begun only those that were killed")
      ->check(whole_number("--max-restarts", 0));
  app.add_option(
         "--max-job-restarts", line.options.max_job_restarts,
         "How often a job that has failed after it had begun is started anew, for a program "
         "that goes on from its checkpoint [0]")
      ->check(whole_number("--max-job-restarts", 0));
}

void add_server_options(CLI::App& app, CommandLine& line) {
  app.add_option("--bind", line.options.bind, "Address of the rendezvous server [127.0.0.1]");
  app.add_option("--port", line.port, "Port of the rendezvous server [any]")
      ->check(whole_number("--port", 0, std::numeric_limits<std::uint16_t>::max()));
  app.add_option("--job", line.options.job, "Name of the job [random]");
  app.add_option("--secret-file", line.options.secret_file,
                 "File with the job's secret, 64 hexadecimal digits [drawn at random]");
  app.add_option("--network", line.options.network,
                 "Networks, addresses or interfaces that workers use between hosts, as in "
                 "10.0.0.0/16 or eth1 [as ELASTIC_NETWORK says]");
  app.add_option("--data-ports", line.options.data_ports,
                 "Ports on which workers accept connections of others, as in 40000-40099, one for "
                 "each worker of a host [any]");
  app.add_flag("--secret-stdin", line.options.secret_stdin,
               "Read the job's secret from the first line of stdin");
  app.add_flag("--encrypt", line.options.encrypt,
               "Use TLS on every TCP connection of the job [as ELASTIC_ENCRYPT says]");
}

void add_host_options(CLI::App& app, CommandLine& line) {
  app.add_option("--join", line.options.join,
                 "Start workers for the job whose server is at HOST:PORT, which another elasticrun "
                 "or elastic-rendezvous runs; needs its secret. Several with commas where the "
                 "server has standbys");
  app.add_option("--connection-file", line.options.connection_file,
                 "Join the job that this file describes, which elastic-rendezvous "
                 "--connection-file writes; it is waited for");
  app.add_option("--slots", line.options.slots,
                 "No more workers than this on this host [--max-np; with --join, and in a step of "
                 "several tasks under srun: -np; for a host in a list that gives it no number: 1]")
      ->check(whole_number("--slots", 1));
  app.add_option("--host-name", line.options.host, "This host's name in ctl status [hostname]");
  app.add_option("--host-number", line.options.number,
                 "This host's place in the order of ranks, with --join [as it comes]")
      ->check(CLI::Range(0, kMostHosts));
  app.add_option("--notice", line.options.notice_text,
                 "Where to ask whether this machine is to end: aws, gcp, azure, file:PATH or "
                 "command:CMD; its workers then leave. With --hosts on each host");
  app.add_option("--prepare", line.options.prepare,
                 "A command that is run on this host before its workers, and has to succeed. With "
                 "--hosts on each host");
  app.add_flag("--end-with-stdin", line.options.end_with_stdin,
               "Stop when stdin ends, and wait for workers where none are left, with --join");
}

void add_hosts_options(CLI::App& app, CommandLine& line) {
  HostsOptions& hosts = line.options.hosts;
  CLI::Option* list =
      app.add_option("--hosts", hosts.list,
                     "Hosts of the job and their slots, as in a:2,b:2: workers are started there "
                     "over ssh");
  CLI::Option* file = app.add_option(
      "--hostfile", hosts.file,
      "A file with one host per line, as in a slots=2 or a:2; hosts come and go as it is edited");
  CLI::Option* script = app.add_option(
      "--discover", hosts.script, "A command that prints such lines; it is run again and again");
  list->excludes(file)->excludes(script);
  file->excludes(script);
  line.placement = app.add_option("--placement", line.placement_name,
                                  "spread: hosts get workers in turn; pack: one is filled after "
                                  "the other [spread]");
  line.placement->check(CLI::IsMember({"spread", "pack"}));
  app.add_option("--env", hosts.variables,
                 "A variable for the workers, NAME or NAME=VALUE; may be given several times. To "
                 "other hosts only these and ELASTIC_... are passed on")
      ->allow_extra_args(false);
  app.add_option("--ssh", hosts.ssh,
                 "The program that runs a command on a host, as PROGRAM HOST COMMAND [ssh]");
  app.add_option("--ssh-args", hosts.ssh_arguments, "More arguments for it, such as '-p 2222'");
}

void add_slurm_options(CLI::App& app, CommandLine& line) {
  app.add_option("--slurm-folder", line.slurm_folder,
                 "Under srun: a folder that all nodes see, where the first task writes how the "
                 "others reach it [the working folder]");
  app.add_flag(
      "--no-slurm", line.no_slurm,
      "Under srun: take each task for a job of its own, and Slurm's variables for nothing");
}

void add_time_limits(CLI::App& app, CommandLine& line) {
  app.add_option("--evict-after-ms", line.evict_after_ms,
                 "Silence after which a worker is given up [500]");
  app.add_option("--max-join-stall-ms", line.max_join_stall_ms,
                 "A joiner that takes longer to receive the state is kept waiting [10000]");
  app.add_option("--disconnect-grace-ms", line.disconnect_grace_ms,
                 "How long a worker whose connection is lost may take to come back, where nothing "
                 "proves its end [1500; --evict-after-ms if that is longer]");
  app.add_option("--outage-window-ms", line.outage_window_ms,
                 "How long the first worker may take to come back where the connections of all are "
                 "lost, where nothing proves their end [300000]");
  app.add_option(
         "--start-timeout-ms", line.start_timeout_ms,
         "How long the first worker waits for the others of -np, before the job begins with "
         "--min-np of them, or fails [60000]")
      ->check(CLI::Range(1L, kLongestStartMs));
  app.add_option(
         "--below-minimum-timeout-ms", line.below_minimum_timeout_ms,
         "How long fewer than --min-np workers wait for others before the job fails [60000]")
      ->check(CLI::Range(1L, kLongestMs));
  line.stall_timeout = app.add_option(
      "--stall-timeout-ms", line.stall_timeout_ms,
      "End the job when some ranks have waited for so long for others to enter a call; 0: never "
      "[as ELASTIC_STALL_TIMEOUT_MS says]");
  line.stall_timeout->check(CLI::Range(0L, kLongestMs));
  app.add_option("--drain-seconds", line.drain_seconds,
                 "On SIGINT or SIGTERM: time for the step in flight before SIGTERM [30]")
      ->check(CLI::Range(0.0, 1e6));
  app.add_option(
         "--exit-seconds", line.exit_seconds,
         "After the job's end: time for the workers to exit before SIGTERM, and SIGKILL 5 s "
         "later [300]")
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--quarantine-seconds", line.quarantine_seconds,
                 "No worker is started for so long on a host where several have failed, while "
                 "others take workers; twice as long after each further failure, at most half an "
                 "hour; 0: never [60]")
      ->check(CLI::Range(0.0, 1800.0));
}

void add_output_options(CLI::App& app, CommandLine& line) {
  app.add_option("--output-dir", line.options.output_dir,
                 "Write each worker's output to DIR/worker-SLOT.out and .err");
  app.add_option("--event-log", line.options.event_log,
                 "File to append to what happens to the job, as lines of JSON");
  app.add_option("--http", line.options.http,
                 "Address and port to show the job at over HTTP, such as 127.0.0.1:0: a page, "
                 "/metrics and /status.json. Readable by all that reach it");
  app.add_flag("--no-prefix", line.no_prefix, "Do not put [slot] in front of the workers' lines");
  app.add_flag("--no-pty", line.no_terminal,
               "The workers' stdout is a pipe and not a pseudo-terminal: programs write to it in "
               "blocks, and isatty(3) says no");
}

void add_questions(CLI::App& app, CommandLine& line) {
  app.add_flag("--check-build", line.check_build, "Say what this build contains, and end");
  app.add_flag("--environment", line.show_environment,
               "Print the environment variables of workers as tables in Markdown, and end");
  app.add_flag("--version", line.show_version, "Say the version, and end");
}

/// Converts the time limits. CLI11 takes nan for a number.
Status take_time_limits(const CommandLine& line, LaunchOptions& options) {
  if (std::isnan(line.drain_seconds)) {
    return invalid("--drain-seconds: nan is no number of seconds");
  }
  if (std::isnan(line.exit_seconds)) return invalid("--exit-seconds: nan is no number of seconds");
  if (std::isnan(line.quarantine_seconds)) {
    return invalid("--quarantine-seconds: nan is no number of seconds");
  }
  options.quarantine = milliseconds(line.quarantine_seconds);
  options.drain = milliseconds(line.drain_seconds);
  options.exit = milliseconds(line.exit_seconds);
  options.evict_after = Milliseconds(line.evict_after_ms);
  options.max_join_stall = Milliseconds(line.max_join_stall_ms);
  options.disconnect_grace = Milliseconds(line.disconnect_grace_ms);
  options.outage_window = Milliseconds(line.outage_window_ms);
  options.start_timeout = Milliseconds(line.start_timeout_ms);
  options.below_minimum_timeout = Milliseconds(line.below_minimum_timeout_ms);
  if (line.stall_timeout->count() > 0) options.stall_timeout = Milliseconds(line.stall_timeout_ms);
  return {};
}

/// The options that all kinds of jobs have.
Result<LaunchRequest> finish(CommandLine& line) {
  LaunchOptions& options = line.options;
  if (!options.notice_text.empty()) {
    const auto source = notice::parse_notice_source(options.notice_text);
    if (!source.ok()) return source.status();
    options.notice = source.value();
  }
  options.bind = rendezvous::without_brackets(options.bind);
  if (options.job.empty() && !options.joins()) options.job = random_id().substr(0, 8);
  if (const auto network = NetworkChoice::parse(options.network);
      !options.network.empty() && !network.ok()) {
    return network.status().within("--network");
  }
  if (const auto ports = PortRange::parse(options.data_ports); !ports.ok()) {
    return ports.status().within("--data-ports");
  }
  if (line.port < 0) return invalid("--port must not be negative");
  options.port = static_cast<std::uint16_t>(line.port);
  options.prefix = !line.no_prefix;
  options.terminal = !line.no_terminal;
  if (Status status = take_time_limits(line, options); !status.ok()) return status;
  if (Status status = check(options); !status.ok()) return status;
  return LaunchRequest(std::move(options));
}

/// The number of workers is that of the slots unless it is given. Without bounds of the user's own
/// the job follows the list of hosts.
Result<LaunchRequest> launch_on_hosts(const CLI::App& app, CommandLine& line) {
  LaunchOptions& options = line.options;
  for (const char* other :
       {"--join", "--connection-file", "--host-name", "--host-number", "--end-with-stdin"}) {
    if (app.get_option(other)->count() == 0) continue;
    return invalid(std::string(other) + " does not go with --hosts, --hostfile and --discover");
  }
  if (line.np->count() > 0 && options.np == 0) return invalid("-np must be at least 1, not 0");
  options.hosts.pack = line.placement_name == "pack";
  if (app.get_option("--bind")->count() == 0) options.bind = "0.0.0.0";
  if (line.max_np->count() == 0) options.max_np = options.np;
  options.job_np = options.np;
  return finish(line);
}

/// The tasks of a step are the launchers of one job, whose server the first of them holds.
Status take_step(const CLI::App& app, const CommandLine& line, const SlurmStep& step,
                 LaunchOptions& options) {
  options.workers_ignore_signals = true;
  if (options.host.empty()) options.host = step.node;
  if (options.joins()) {
    if (!options.number && step.array_index.value_or(kMostHosts + 1) <= kMostHosts) {
      options.number = step.array_index;
    }
    return {};
  }
  if (step.tasks == 1) return {};
  if (line.np->count() == 0 && step.uneven) {
    return invalid(
        "the tasks of this step have room for different numbers of workers "
        "(SLURM_JOB_CPUS_PER_NODE, SLURM_STEP_TASKS_PER_NODE): give -np, the workers of each task");
  }
  if (step.tasks > kMostHosts) {
    return invalid("the step has " + std::to_string(step.tasks) + " tasks, more than " +
                   std::to_string(kMostHosts) + ": start one elasticrun on each node");
  }
  if (options.np < 1) return invalid("-np must be at least 1, not " + std::to_string(options.np));
  // Too many are refused later.
  const auto in_all = [&](int workers) { return std::min(workers, kMostWorkers + 1) * step.tasks; };
  options.number = step.task;
  options.job_np = in_all(options.np);
  if (options.slots == 0) options.slots = options.np;
  if (line.max_np->count() == 0) options.max_np = in_all(options.slots);
  const std::string file = line.slurm_folder + "/.elastic-" + step.id + ".json";
  (step.task == 0 ? options.shared_file : options.connection_file) = file;
  const auto other = std::find_if(step.nodes.begin(), step.nodes.end(),
                                  [&](const std::string& node) { return node != step.node; });
  if (other != step.nodes.end()) options.reached_from = *other;
  if (other != step.nodes.end() && app.get_option("--bind")->count() == 0) {
    options.bind = "0.0.0.0";
  }
  return {};
}

}  // namespace

Status check_job_id(const std::string& job) {
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  };
  if (job.empty() || job.size() > 64 || job.front() == '.' ||
      !std::all_of(job.begin(), job.end(), allowed)) {
    return invalid("--job \"" + job +
                   "\": use 1 to 64 letters, digits, '-', '_' and '.', not beginning with '.'");
  }
  return {};
}

Result<LaunchRequest> parse_launch_options(const std::vector<std::string>& arguments,
                                           const Result<std::optional<SlurmStep>>& step) {
  CommandLine line;
  CLI::App app(
      "elasticrun -np N [options] program [arguments]\n"
      "Starts the workers of an elastic job and replaces those that die.\n"
      "Everything from the program's name on belongs to the program.\n"
      "A running job is looked at and changed with: elasticrun ctl --help",
      "elasticrun");
  app.prefix_command();
  add_worker_options(app, line);
  add_server_options(app, line);
  add_host_options(app, line);
  add_hosts_options(app, line);
  add_slurm_options(app, line);
  add_time_limits(app, line);
  add_output_options(app, line);
  add_questions(app, line);

  try {
    app.parse(cli11_arguments(arguments));
  } catch (const CLI::CallForHelp&) {
    return LaunchRequest(PrintAndExit{app.help()});
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string text = error.what();
    if (!text.starts_with("--np:")) return invalid(text);
    return invalid(line.np->count() > 1 ? "-np is given more than once"
                                        : "-np lacks its number: how many workers to start");
  } catch (const CLI::ParseError& error) {
    return invalid(error.what());
  }
  if (line.show_version) return LaunchRequest(PrintAndExit{version_line()});
  if (line.show_environment) return LaunchRequest(PrintAndExit{environment_table()});
  if (line.check_build) return LaunchRequest(CheckBuild{});

  LaunchOptions& options = line.options;
  const std::vector<std::string> rest = app.remaining();
  if (!rest.empty() && rest.front() != "--" && rest.front().starts_with("-")) {
    return invalid(unknown_option(app, rest.front(), "elasticrun --help"));
  }
  // The program's own arguments as they were typed, an -np among them untouched.
  options.command.assign(arguments.end() - static_cast<std::ptrdiff_t>(rest.size()),
                         arguments.end());
  if (!options.command.empty() && options.command.front() == "--") {
    options.command.erase(options.command.begin());
  }
  if (options.command.empty()) return invalid("the program to run is missing");
  if (options.command.front().empty()) return invalid("the name of the program to run is empty");
  if (Status status = check_not_empty(app); !status.ok()) return status;
  if (Status status = check_not_zero(app, options); !status.ok()) return status;
  if (options.hosts.given()) return launch_on_hosts(app, line);
  if (Status status = check_without_hosts(app); !status.ok()) return status;
  if (!line.no_slurm && !step.ok()) return step.status();
  const SlurmStep* const task = !line.no_slurm && step.value() ? &*step.value() : nullptr;
  if (line.np->count() == 0) {
    if (task == nullptr) return invalid(missing_np(options.command.front()));
    options.np = task->workers;
  }
  if (Status status = check_host(app, options); !status.ok()) return status;
  options.job_np = options.np;
  if (task != nullptr) {
    if (Status status = take_step(app, line, *task, options); !status.ok()) return status;
  }
  if (options.max_np == 0) options.max_np = std::max(options.np, options.slots);
  if (options.slots == 0) options.slots = options.max_np;
  return finish(line);
}

}  // namespace elastic::launcher
