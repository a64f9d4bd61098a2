#include "benchmarks/recovery/recovery.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "benchmarks/job/child_run.hpp"
#include "benchmarks/job/program_files.hpp"
#include "benchmarks/job/rank_device.hpp"
#include "benchmarks/network/host_network.hpp"
#include "benchmarks/recovery/recovery_log.hpp"
#include "benchmarks/recovery/recovery_time.hpp"
#include "benchmarks/recovery/recovery_worker.hpp"
#include "benchmarks/report/host_report.hpp"
#include "benchmarks/report/statistics.hpp"

namespace elastic::bench {

using network::HostNetwork;

namespace {

// A run takes a second or two. The deadline allows for many workers on a busy machine.
constexpr std::chrono::milliseconds kRunDeadline{120000};

bool cuts(const RecoveryOptions& options) {
  return options.fault == "link";
}

/// Whether the other workers lose this rank. A link's fault has no victims of this kind.
bool is_victim(const RecoveryWorkerOptions& worker, int rank) {
  return worker.hosts.empty() &&
         std::find(worker.victims.begin(), worker.victims.end(), rank) != worker.victims.end();
}

Result<Survivor> read_survivor(const std::string& folder, int rank) {
  auto calls = read_calls(calls_file(folder, rank));
  if (!calls.ok()) return calls.status();
  auto change = read_change(change_file(folder, rank));
  if (!change.ok()) return change.status();
  return Survivor{std::move(calls).value(), change.value()};
}

Result<RecoveryTime> read_run(const RecoveryWorkerOptions& worker) {
  auto fault = read_fault(fault_file(worker.folder));
  if (!fault.ok()) return fault.status();
  RecoveryRun run{.workers = worker.np,
                  .victims = worker.hosts.empty() ? worker.victims : std::vector<int>(),
                  .warmup = kWarmupCalls,
                  .fault_ns = fault.value(),
                  .survivors = {}};
  for (int rank = 0; rank < worker.np; ++rank) {
    if (is_victim(worker, rank)) continue;
    auto survivor = read_survivor(worker.folder, rank);
    if (!survivor.ok()) return survivor.status();
    run.survivors.emplace(rank, std::move(survivor).value());
  }
  return recovery_time(run);
}

Result<RecoveryTime> make_run(const ProgramFiles& files, const RecoveryOptions& options,
                              RecoveryWorkerOptions worker) {
  ScratchFolder folder;
  if (Status status = ScratchFolder::make(folder); !status.ok()) return status;
  worker.folder = folder.path().string();
  HostNetwork hosts;  // a new network for each run, so that a cut does not affect the next run
  if (cuts(options)) {
    const Status made = HostNetwork::make(worker.np, hosts);
    if (!made.ok()) return made.within("--fault link");
    worker.hosts = hosts.spaces();
  }
  std::vector<std::string> command{files.elasticrun.string(),
                                   "-np",
                                   std::to_string(worker.np),
                                   "--min-np",
                                   "1",
                                   "--max-restarts",
                                   "0",
                                   "--evict-after-ms",
                                   std::to_string(options.evict_after_ms)};
  if (cuts(options)) command.insert(command.end(), {"--bind", HostNetwork::kBridgeAddress});
  command.push_back(files.self.string());
  for (auto& argument : worker_arguments(worker)) command.push_back(std::move(argument));
  const auto start = [&] { return run_child(command, folder.path() / "output", kRunDeadline); };
  const Status ended = cuts(options) ? network::run_on_host(hosts.bridge_space(), start) : start();
  auto time = read_run(worker);
  // A short job can be over before elasticrun learns of the death; it then reports a failed job.
  // The run is valid if each survivor has reached its end.
  if (ended.ok() || (time.ok() && ended.code() != Code::kTimeout)) return time;
  return time.ok() ? ended : ended.within(time.status().message());
}

/// Draws the victims and the moment of one run.
RecoveryWorkerOptions draw(const RecoveryOptions& options, std::mt19937_64& random) {
  RecoveryWorkerOptions worker{.np = options.np,
                               .bytes = options.bytes,
                               .victims = {},
                               .stops = options.fault == "sigstop",
                               .between = options.moment == "between",
                               .hosts = {},
                               .device = options.device,
                               .transport = options.transport,
                               .folder = {}};
  if (cuts(options)) {
    // Neighbours both in the ring and in recursive doubling, so that each call uses their link.
    const int lower = 2 * std::uniform_int_distribution<int>(0, options.np / 2 - 1)(random);
    worker.victims = {lower, lower + 1};
  } else {
    std::vector<int> ranks(static_cast<std::size_t>(options.np));
    std::iota(ranks.begin(), ranks.end(), 0);
    std::shuffle(ranks.begin(), ranks.end(), random);
    worker.victims.assign(ranks.begin(), ranks.begin() + (options.fault == "two" ? 2 : 1));
  }
  worker.delay = std::uniform_real_distribution<double>(0, 1)(random);
  if (worker.between) worker.delay = 0;
  return worker;
}

constexpr std::pair<const char*, double RecoveryPhases::*> kPhases[] = {
    {"detect", &RecoveryPhases::detect}, {"freeze", &RecoveryPhases::freeze},
    {"decide", &RecoveryPhases::decide}, {"relink", &RecoveryPhases::relink},
    {"replay", &RecoveryPhases::replay},
};

/// The results of all runs so far. Owned by the main thread.
struct Totals {
  std::vector<RecoveryTime> runs;

  Summary of(double RecoveryTime::*part) const {
    std::vector<double> values;
    for (const RecoveryTime& run : runs) values.push_back(run.*part);
    return summarize(std::move(values));
  }
  double median_of(double RecoveryPhases::*phase) const {
    std::vector<double> values;
    for (const RecoveryTime& run : runs) values.push_back(run.phases.*phase);
    return summarize(std::move(values)).median;
  }
  auto committed() const {
    return std::count_if(runs.begin(), runs.end(), [](const auto& run) { return run.committed; });
  }
};

nlohmann::json row_of(const RecoveryOptions& options, const LibrarySettings& settings,
                      const Totals& totals) {
  const Summary summary = totals.of(&RecoveryTime::recovery_ms);
  const Summary until_return = totals.of(&RecoveryTime::return_ms);
  const Summary change = totals.of(&RecoveryTime::change_ms);
  nlohmann::json row{{"fault", options.fault},
                     {"moment", options.moment},
                     {"backend", settings.backend},
                     {"transport", settings.transport},
                     {"encrypt", settings.encrypt.value_or(false)},
                     {"memory", options.device},
                     {"ranks", options.np},
                     {"bytes", options.bytes},
                     {"runs", options.runs},
                     {"min_ms", summary.min},
                     {"p50_ms", summary.median},
                     {"p99_ms", summary.p99},
                     {"max_ms", summary.max},
                     {"return_p50_ms", until_return.median},
                     {"return_p99_ms", until_return.p99},
                     {"return_max_ms", until_return.max},
                     {"change_p50_ms", change.median},
                     {"change_max_ms", change.max},
                     {"undisturbed_ms", totals.of(&RecoveryTime::undisturbed_ms).median},
                     {"evict_after_ms", options.evict_after_ms},
                     {"committed_runs", totals.committed()},
                     {"seed", options.seed}};
  for (const auto& [name, phase] : kPhases) {
    row[std::string(name) + "_p50_ms"] = totals.median_of(phase);
  }
  return row;
}

void print_header(const RecoveryOptions& options, const LibrarySettings& settings) {
  std::printf(
      "# elastic recovery: %d ranks, %zu bytes of int64%s, backend %s, transport %s%s, fault "
      "%s%s\n",
      options.np, options.bytes, options.device == "cuda" ? " on CUDA devices" : "",
      settings.backend.c_str(), settings.transport.c_str(),
      settings.encrypt.value_or(false) ? ", encrypted" : "", options.fault.c_str(),
      options.moment == "between" ? " between calls" : "");
  std::printf("# seed %" PRIu64 "; eviction after %d ms of silence\n#\n", options.seed,
              options.evict_after_ms);
  std::printf("# %6s %7s %7s %13s %13s %13s\n", "run", "victims", "moment", "call (ms)",
              "return (ms)", "recovery (ms)");
  std::fflush(stdout);
}

void print_run(int run, const RecoveryWorkerOptions& worker, const RecoveryTime& time) {
  std::string victims;
  for (const int victim : worker.victims) {
    victims += (victims.empty() ? "" : ",") + std::to_string(victim);
  }
  std::printf("  %6d %7s %6.0f%% %13.3f %13.3f %13.3f\n", run, victims.c_str(), worker.delay * 100,
              time.undisturbed_ms, time.return_ms, time.recovery_ms);
  std::fflush(stdout);
}

void print_summary(const RecoveryOptions& options, const Totals& totals) {
  const Summary summary = totals.of(&RecoveryTime::recovery_ms);
  const Summary until_return = totals.of(&RecoveryTime::return_ms);
  const Summary change = totals.of(&RecoveryTime::change_ms);
  std::printf("#\n# recovery of %zu runs: min %.3f ms, p50 %.3f ms, p99 %.3f ms, max %.3f ms\n",
              totals.runs.size(), summary.min, summary.median, summary.p99, summary.max);
  std::printf("# from the fault to the return: p50 %.3f ms, p99 %.3f ms, max %.3f ms\n",
              until_return.median, until_return.p99, until_return.max);
  std::printf("# from the fault until all are in the new view: p50 %.3f ms, max %.3f ms\n",
              change.median, change.max);
  std::printf("# of which, medians:");
  for (const auto& [name, phase] : kPhases) {
    std::printf(" %s %.3f ms%s", name, totals.median_of(phase),
                phase == &RecoveryPhases::replay ? "\n" : ",");
  }
  std::printf("# undisturbed call: median %.3f ms\n",
              totals.of(&RecoveryTime::undisturbed_ms).median);
  if (cuts(options)) {
    std::printf("# no worker was lost\n");
  } else {
    std::printf("# in %td runs a victim's part of the call was still counted\n",
                totals.committed());
  }
  std::fflush(stdout);
}

}  // namespace

Status run_recovery(const RecoveryOptions& options, const LibrarySettings& settings) {
  NetworkRecord network;
  if (!cuts(options)) network.add({});  // no tuning, because the jobs are on this host
  if (options.device == "cuda") {
    if (Status status = RankDevice::check(); !status.ok()) return status;
  }
  auto files = program_files();
  if (!files.ok()) return files.status();
  print_header(options, settings);
  std::mt19937_64 random(options.seed);
  Totals totals;
  for (int run = 1; run <= options.runs; ++run) {
    const RecoveryWorkerOptions worker = draw(options, random);
    auto time = make_run(files.value(), options, worker);
    if (!time.ok()) return time.status().within("run " + std::to_string(run));
    print_run(run, worker, time.value());
    totals.runs.push_back(time.value());
  }
  print_summary(options, totals);
  if (options.json.empty()) return {};
  const auto rows = nlohmann::json::array({row_of(options, settings, totals)});
  return write_report(options.json, options.command, rows, network);
}

}  // namespace elastic::bench
