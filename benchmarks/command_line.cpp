#include "benchmarks/command_line.hpp"

#include <random>
#include <sstream>

#include <CLI/CLI.hpp>

#include "base/cli11_arguments.hpp"
#include "benchmarks/collective/collective_command_line.hpp"
#include "benchmarks/command_line_options.hpp"
#include "benchmarks/model/model_command_line.hpp"
#include "benchmarks/recovery/worker_digits.hpp"
#include "benchmarks/sparse/sparse_command_line.hpp"
#include "benchmarks/steps/fusion_command_line.hpp"
#include "benchmarks/steps/scaling_command_line.hpp"
#include "benchmarks/tune/tune_command_line.hpp"

namespace elastic::bench {

namespace {

// Byte counts as typed, parsed after CLI11, which does not know the suffixes K, M and G.
struct Texts {
  std::string bytes = "4M";
  std::string state_bytes = "64M";
};

CLI::App* add_recovery(CLI::App& app, RecoveryOptions& options, Texts& texts) {
  CLI::App* sub = app.add_subcommand(
      "recovery", "Time from a fault to the survivors' next result, over many runs");
  sub->add_option("--np", options.np, "Workers, including the one or two with the fault [4]")
      ->check(CLI::Range(2, kMostDigits));
  sub->add_option("--bytes", texts.bytes, "Size of the tensor; K, M, G [4M]");
  sub->add_option("--runs", options.runs, "Faults to measure [20]")
      ->check(CLI::Range(1, 1'000'000));
  sub->add_option("--fault", options.fault,
                  "sigkill: a worker dies; two: two die at once; sigstop: a worker is stopped and "
                  "evicted; link: the link between two is cut, and no worker is lost (needs root, "
                  "for network namespaces) [sigkill]")
      ->check(CLI::IsMember({"sigkill", "two", "sigstop", "link"}));
  sub->add_option("--moment", options.moment,
                  "call: the fault comes within a call; between: before the victim's next call, so "
                  "that the others are not in a collective of NCCL [call]")
      ->check(CLI::IsMember({"call", "between"}));
  sub->add_option("--evict-after-ms", options.evict_after_ms,
                  "Silence after which the job evicts a worker [500]")
      ->check(CLI::Range(1, 60'000));
  sub->add_option("--seed", options.seed, "Seed for the victims and moments [random]");
  add_device(*sub, options.device);
  add_transport(*sub, options.transport);
  add_json(*sub, options.json);
  return sub;
}

CLI::App* add_worker(CLI::App& app, RecoveryWorkerOptions& options, Texts& texts) {
  CLI::App* sub = app.add_subcommand("recovery-worker")->group("");
  sub->add_option("--np", options.np)->required()->check(CLI::Range(2, kMostDigits));
  sub->add_option("--bytes", texts.bytes)->required();
  sub->add_option("--victims", options.victims)
      ->required()
      ->delimiter(',')
      ->check(CLI::Range(0, kMostDigits - 1));
  sub->add_flag("--stops", options.stops);
  sub->add_flag("--between", options.between);
  sub->add_option("--hosts", options.hosts)->delimiter(',');
  sub->add_option("--delay", options.delay)->required()->check(CLI::Range(0.0, 1.0));
  sub->add_option("--folder", options.folder)->required();
  add_device(*sub, options.device);
  add_transport(*sub, options.transport);
  return sub;
}

CLI::App* add_join(CLI::App& app, JoinOptions& options, Texts& texts) {
  CLI::App* sub =
      app.add_subcommand("join", "How long members are paused while a joiner receives the state");
  sub->add_option("--np", options.np, "Workers, including the joiner [4]")
      ->check(CLI::Range(2, kMostRanks));
  sub->add_option("--state-bytes", texts.state_bytes, "Size of the state; K, M, G [64M]");
  sub->add_option("--runs", options.runs, "Joins to measure [5]")->check(CLI::Range(1, 1'000'000));
  add_transport(*sub, options.transport);
  add_json(*sub, options.json);
  return sub;
}

CLI::App* add_join_worker(CLI::App& app, JoinWorkerOptions& options, Texts& texts) {
  CLI::App* sub = app.add_subcommand("join-worker")->group("");
  sub->add_option("--np", options.np)->required()->check(CLI::Range(2, kMostRanks));
  sub->add_option("--state-bytes", texts.state_bytes)->required();
  sub->add_option("--folder", options.folder)->required();
  sub->add_option("--job", options.job)->required();
  add_transport(*sub, options.transport);
  return sub;
}

Status read_recovery(const Texts& texts, RecoveryOptions& options) {
  if (Status status = read_bytes("--bytes", texts.bytes, options.bytes); !status.ok()) {
    return status;
  }
  if (options.bytes % sizeof(std::int64_t) != 0) {
    return invalid("--bytes " + texts.bytes + " is not a multiple of 8: the elements are int64");
  }
  if (options.fault == "two" && options.np < 3) {
    return invalid("--fault two needs --np 3 or more: no worker would survive");
  }
  if (options.fault != "link") return {};
  if (options.moment == "between") {
    return invalid("--fault link needs --moment call: it cuts a link that carries data");
  }
  if (options.np < 3) {
    return invalid("--fault link needs --np 3 or more: a third worker has to relay");
  }
  if (options.transport == "shm") {
    return invalid("--fault link cuts a network: --transport must be tcp or auto");
  }
  options.transport = "tcp";
  return {};
}

Status read_join(const Texts& texts, std::size_t& state_bytes) {
  if (Status status = read_bytes("--state-bytes", texts.state_bytes, state_bytes); !status.ok()) {
    return status;
  }
  if (state_bytes % sizeof(float) != 0) {
    return invalid("--state-bytes " + texts.state_bytes +
                   " is not a multiple of 4: the elements are float");
  }
  return {};
}

// Adds the command to `options`, for a measurement that may start its ranks itself.
template <typename MeasurementOptions>
Result<Request> with_command(Result<MeasurementOptions> options,
                             const std::vector<std::string>& arguments) {
  if (!options.ok()) return options.status();
  options.value().arguments = arguments;
  if (options.value().command.empty())
    options.value().command = command_text("elastic-bench", arguments);
  return Request(std::move(options).value());
}

}  // namespace

Result<Request> parse_command_line(const std::vector<std::string>& arguments) {
  CLI::App app("elastic-bench: measures elastic on this machine. See docs/benchmarking.md.",
               "elastic-bench");
  app.require_subcommand(1);
  Texts texts;
  CollectiveCommandLine collective;
  FusionCommandLine fusion;
  ScalingCommandLine scaling;
  TuneCommandLine tune;
  SparseCommandLine sparse;
  ModelCommandLine model;
  RecoveryOptions recovery;
  RecoveryWorkerOptions worker;
  JoinOptions join;
  JoinWorkerOptions join_worker;
  recovery.seed = std::random_device{}();
  collective.add(app);
  fusion.add(app);
  scaling.add(app);
  tune.add(app);
  sparse.add(app);
  model.add(app);
  const CLI::App* recovery_sub = add_recovery(app, recovery, texts);
  add_worker(app, worker, texts);
  const CLI::App* join_sub = add_join(app, join, texts);
  const CLI::App* join_worker_sub = add_join_worker(app, join_worker, texts);

  try {
    app.parse(cli11_arguments(arguments));
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    return Request(PrintAndExit{chosen.empty() ? app.help() : chosen.front()->help()});
  } catch (const CLI::ParseError& error) {
    return invalid(error.what());
  }
  if (collective.parsed()) return with_command(collective.read(), arguments);
  if (fusion.parsed()) return with_command(fusion.read(), arguments);
  if (scaling.parsed()) return with_command(scaling.read(), arguments);
  if (tune.parsed()) return with_command(tune.read(), arguments);
  if (sparse.parsed()) return with_command(sparse.read(), arguments);
  if (model.parsed()) {
    auto options = model.read();
    if (!options.ok()) return options.status();
    options.value().command = command_text("elastic-bench", arguments);
    return Request(std::move(options).value());
  }
  if (recovery_sub->parsed()) {
    recovery.command = command_text("elastic-bench", arguments);
    if (Status status = read_recovery(texts, recovery); !status.ok()) return status;
    return Request(std::move(recovery));
  }
  if (join_sub->parsed()) {
    join.command = command_text("elastic-bench", arguments);
    if (Status status = read_join(texts, join.state_bytes); !status.ok()) return status;
    return Request(std::move(join));
  }
  if (join_worker_sub->parsed()) {
    if (Status status = read_join(texts, join_worker.state_bytes); !status.ok()) return status;
    return Request(std::move(join_worker));
  }
  if (Status status = read_bytes("--bytes", texts.bytes, worker.bytes); !status.ok()) return status;
  return Request(std::move(worker));
}

std::vector<std::string> rank_arguments(const RankOptions& options) {
  std::vector<std::string> arguments = options.arguments;
  arguments.insert(arguments.end(), {"--np", "0", "--started-as", options.command});
  return arguments;
}

std::vector<std::string> worker_arguments(const RecoveryWorkerOptions& options) {
  std::ostringstream delay;
  delay << options.delay;
  std::string victims;
  for (const int victim : options.victims) {
    victims += (victims.empty() ? "" : ",") + std::to_string(victim);
  }
  std::vector<std::string> arguments{"recovery-worker",
                                     "--np",
                                     std::to_string(options.np),
                                     "--bytes",
                                     std::to_string(options.bytes),
                                     "--victims",
                                     victims,
                                     "--delay",
                                     delay.str(),
                                     "--folder",
                                     options.folder,
                                     "--device",
                                     options.device};
  if (options.stops) arguments.emplace_back("--stops");
  if (options.between) arguments.emplace_back("--between");
  if (!options.hosts.empty()) {
    std::string hosts;
    for (const std::string& host : options.hosts) hosts += (hosts.empty() ? "" : ",") + host;
    arguments.insert(arguments.end(), {"--hosts", hosts});
  }
  if (!options.transport.empty()) {
    arguments.insert(arguments.end(), {"--transport", options.transport});
  }
  return arguments;
}

std::vector<std::string> worker_arguments(const JoinWorkerOptions& options) {
  std::vector<std::string> arguments{"join-worker",
                                     "--np",
                                     std::to_string(options.np),
                                     "--state-bytes",
                                     std::to_string(options.state_bytes),
                                     "--folder",
                                     options.folder,
                                     "--job",
                                     options.job};
  if (!options.transport.empty()) {
    arguments.insert(arguments.end(), {"--transport", options.transport});
  }
  return arguments;
}

}  // namespace elastic::bench
