#include "benchmarks/command_line.hpp"

#include <map>
#include <random>
#include <sstream>

#include <CLI/CLI.hpp>

#include "benchmarks/element_names.hpp"
#include "benchmarks/worker_digits.hpp"

namespace elastic::bench {

namespace {

constexpr int kMostRanks = 4096;
constexpr int kMostCalls = 100'000'000;

Status invalid(const std::string& message) {
  return Status(Code::kInvalidArgument, message);
}

// Byte counts as typed; parsed after CLI11, which knows no such suffixes.
struct Texts {
  std::string min_bytes = "8";
  std::string max_bytes = "64M";
  std::string increment;
  std::string bytes = "4M";
  std::string state_bytes = "64M";
};

template <typename Value>
std::map<std::string, Value> by_name(const std::vector<Value>& values) {
  std::map<std::string, Value> names;
  for (const Value value : values) names.emplace(name_of(value), value);
  return names;
}

// One that names what there is, unlike CLI11's own, which lists the numbers of the enumerators.
template <typename Value>
CLI::Option* add_named(CLI::App& app, const std::string& option, Value& value,
                       const std::vector<Value>& values, const std::string& text) {
  const auto names = by_name(values);
  std::string list;
  for (const auto& [name, known] : names) list += (list.empty() ? "" : ", ") + name;
  return app.add_option_function<std::string>(
      option,
      [names, list, option, &value](const std::string& given) {
        const auto found = names.find(given);
        if (found == names.end()) {
          throw CLI::ValidationError(option, "\"" + given + "\" is not one of " + list);
        }
        value = found->second;
      },
      text + ": " + list);
}

void add_transport(CLI::App& app, std::string& transport) {
  app.add_option("--transport", transport, "Links between the workers: auto, shm or tcp [auto]")
      ->check(CLI::IsMember({"auto", "shm", "tcp"}));
}

CLI::App* add_allreduce(CLI::App& app, AllreduceOptions& options, Texts& texts) {
  CLI::App* sub = app.add_subcommand("allreduce", "Time and bandwidth of allreduce by size");
  sub->add_option("-b,--minbytes", texts.min_bytes, "Smallest tensor, in bytes; K, M, G [8]");
  sub->add_option("-e,--maxbytes", texts.max_bytes, "Largest tensor [64M]");
  auto* factor = sub->add_option("-f,--stepfactor", options.sizes.factor, "From size to size [2]")
                     ->check(CLI::Range(std::size_t{2}, std::size_t{1} << 30));
  sub->add_option("-i,--stepbytes", texts.increment, "From size to size, instead of a factor")
      ->excludes(factor);
  sub->add_option("-n,--iters", options.iterations, "Calls that are timed, for each size [20]")
      ->check(CLI::Range(1, kMostCalls));
  sub->add_option("-w,--warmup_iters", options.warmup, "Calls before, not timed [5]")
      ->check(CLI::Range(0, kMostCalls));
  sub->add_option("-c,--check", options.check, "Check the results, 0 or 1 [1]");
  add_named(*sub, "-d,--datatype", options.dtype, all_dtypes(), "Element type [float]");
  add_named(*sub, "-o,--op", options.op, all_ops(), "Reduction [sum]");
  sub->add_option("--np", options.np,
                  "Ranks to start on this machine; without it this is one rank of a job of "
                  "elasticrun or mpirun")
      ->check(CLI::Range(1, kMostRanks));
  add_transport(*sub, options.transport);
  sub->add_flag("--encrypt", options.encrypt,
                "With --np: each size in the clear and under TLS, side by side, over tcp. Without: "
                "under TLS");
  sub->add_option("--json", options.json, "Write a report to this file");
  sub->add_option("--started-as", options.command)->group("");
  return sub;
}

CLI::App* add_recovery(CLI::App& app, RecoveryOptions& options, Texts& texts) {
  CLI::App* sub = app.add_subcommand(
      "recovery", "Time from a fault to the survivors' next result, over many runs");
  sub->add_option("--np", options.np, "Workers, of which one or two are struck [4]")
      ->check(CLI::Range(2, kMostDigits));
  sub->add_option("--bytes", texts.bytes, "Size of the tensor; K, M, G [4M]");
  sub->add_option("--runs", options.runs, "Faults to measure [20]")
      ->check(CLI::Range(1, 1'000'000));
  sub->add_option("--fault", options.fault,
                  "sigkill: a worker dies; two: two at once; sigstop: one stands still and is "
                  "evicted; link: the network between two is cut, and nobody is lost (needs root, "
                  "for network namespaces) [sigkill]")
      ->check(CLI::IsMember({"sigkill", "two", "sigstop", "link"}));
  sub->add_option("--evict-after-ms", options.evict_after_ms,
                  "Silence after which the job gives a worker up [500]")
      ->check(CLI::Range(1, 60'000));
  sub->add_option("--seed", options.seed, "Of the victims and moments [random]");
  add_transport(*sub, options.transport);
  sub->add_option("--json", options.json, "Write a report to this file");
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
  sub->add_option("--hosts", options.hosts)->delimiter(',');
  sub->add_option("--delay", options.delay)->required()->check(CLI::Range(0.0, 1.0));
  sub->add_option("--folder", options.folder)->required();
  add_transport(*sub, options.transport);
  return sub;
}

CLI::App* add_join(CLI::App& app, JoinOptions& options, Texts& texts) {
  CLI::App* sub = app.add_subcommand(
      "join", "How long members stand still while a newcomer receives the state");
  sub->add_option("--np", options.np, "Workers, the newcomer included [4]")
      ->check(CLI::Range(2, kMostRanks));
  sub->add_option("--state-bytes", texts.state_bytes, "Size of the state; K, M, G [64M]");
  sub->add_option("--runs", options.runs, "Joins to measure [5]")->check(CLI::Range(1, 1'000'000));
  add_transport(*sub, options.transport);
  sub->add_option("--json", options.json, "Write a report to this file");
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

Status read_bytes(const std::string& option, const std::string& text, std::size_t& bytes) {
  auto parsed = parse_byte_size(text);
  if (!parsed.ok()) return parsed.status().within(option);
  bytes = parsed.value();
  return {};
}

Status read_allreduce(const Texts& texts, AllreduceOptions& options) {
  SizeRange& sizes = options.sizes;
  if (Status status = read_bytes("-b", texts.min_bytes, sizes.min); !status.ok()) return status;
  if (Status status = read_bytes("-e", texts.max_bytes, sizes.max); !status.ok()) return status;
  if (!texts.increment.empty()) {
    if (Status status = read_bytes("-i", texts.increment, sizes.increment); !status.ok()) {
      return status;
    }
  }
  if (sizes.max < sizes.min) {
    return invalid("-e " + texts.max_bytes + " is less than -b " + texts.min_bytes);
  }
  if (sizes.min < size_of(options.dtype)) {
    return invalid("-b " + texts.min_bytes + " is less than one element of -d " +
                   name_of(options.dtype));
  }
  if (options.encrypt && options.np > 0) {
    if (options.transport.empty()) options.transport = "tcp";
    if (options.transport != "tcp") {
      return invalid("--encrypt with --transport " + options.transport +
                     ": only what goes over tcp is encrypted");
    }
  }
  return {};
}

// As it can be typed again.
std::string command_text(const std::vector<std::string>& arguments) {
  std::string text = "elastic-bench";
  for (const std::string& argument : arguments) {
    const bool plain = argument.find_first_of(" \t\n'\"\\$*?") == std::string::npos;
    text += plain && !argument.empty() ? " " + argument : " '" + argument + "'";
  }
  return text;
}

Status read_recovery(const Texts& texts, RecoveryOptions& options) {
  if (Status status = read_bytes("--bytes", texts.bytes, options.bytes); !status.ok()) {
    return status;
  }
  if (options.bytes % sizeof(std::int64_t) != 0) {
    return invalid("--bytes " + texts.bytes + " is not a multiple of 8: the elements are int64");
  }
  if (options.fault == "two" && options.np < 3) {
    return invalid("--fault two needs --np 3 or more: nobody would survive");
  }
  if (options.fault != "link") return {};
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

}  // namespace

Result<Request> parse_command_line(const std::vector<std::string>& arguments) {
  CLI::App app("elastic-bench: measures elastic on this machine. See docs/benchmarking.md.",
               "elastic-bench");
  app.require_subcommand(1);
  Texts texts;
  AllreduceOptions allreduce;
  RecoveryOptions recovery;
  RecoveryWorkerOptions worker;
  JoinOptions join;
  JoinWorkerOptions join_worker;
  recovery.seed = std::random_device{}();
  const CLI::App* allreduce_sub = add_allreduce(app, allreduce, texts);
  const CLI::App* recovery_sub = add_recovery(app, recovery, texts);
  add_worker(app, worker, texts);
  const CLI::App* join_sub = add_join(app, join, texts);
  const CLI::App* join_worker_sub = add_join_worker(app, join_worker, texts);

  // CLI11 has no long options with one dash, and mpirun's users type -np.
  std::vector<std::string> given(arguments.rbegin(), arguments.rend());
  for (auto& argument : given) {
    if (argument == "-np") argument = "--np";
  }
  try {
    app.parse(given);
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    return Request(PrintAndExit{chosen.empty() ? app.help() : chosen.front()->help()});
  } catch (const CLI::ParseError& error) {
    return invalid(error.what());
  }
  if (allreduce_sub->parsed()) {
    if (allreduce.command.empty()) allreduce.command = command_text(arguments);
    if (Status status = read_allreduce(texts, allreduce); !status.ok()) return status;
    return Request(std::move(allreduce));
  }
  if (recovery_sub->parsed()) {
    recovery.command = command_text(arguments);
    if (Status status = read_recovery(texts, recovery); !status.ok()) return status;
    return Request(std::move(recovery));
  }
  if (join_sub->parsed()) {
    join.command = command_text(arguments);
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

std::vector<std::string> rank_arguments(const AllreduceOptions& options) {
  const SizeRange& sizes = options.sizes;
  std::vector<std::string> arguments{
      "allreduce",
      "-b",
      std::to_string(sizes.min),
      "-e",
      std::to_string(sizes.max),
      sizes.increment > 0 ? "-i" : "-f",
      std::to_string(sizes.increment > 0 ? sizes.increment : sizes.factor),
      "-n",
      std::to_string(options.iterations),
      "-w",
      std::to_string(options.warmup),
      "-c",
      options.check ? "1" : "0",
      "-d",
      name_of(options.dtype),
      "-o",
      name_of(options.op),
      "--started-as",
      options.command};
  if (!options.transport.empty()) {
    arguments.insert(arguments.end(), {"--transport", options.transport});
  }
  if (!options.json.empty()) arguments.insert(arguments.end(), {"--json", options.json});
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
                                     options.folder};
  if (options.stops) arguments.emplace_back("--stops");
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
