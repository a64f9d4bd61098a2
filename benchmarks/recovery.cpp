#include "benchmarks/recovery.hpp"

#include <cinttypes>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "benchmarks/child_run.hpp"
#include "benchmarks/host_report.hpp"
#include "benchmarks/program_files.hpp"
#include "benchmarks/recovery_log.hpp"
#include "benchmarks/recovery_time.hpp"
#include "benchmarks/recovery_worker.hpp"
#include "benchmarks/statistics.hpp"

namespace elastic::bench {

namespace {

// Long enough for a start of many workers on a busy machine; a run takes a second or two.
constexpr std::chrono::milliseconds kRunDeadline{120000};

Result<RecoveryTime> read_run(const RecoveryWorkerOptions& worker) {
  auto fault = read_fault(fault_file(worker.folder));
  if (!fault.ok()) return fault.status();
  RecoveryRun run{.workers = worker.np,
                  .victim = worker.victim,
                  .warmup = kWarmupCalls,
                  .fault_ns = fault.value(),
                  .survivors = {}};
  for (int rank = 0; rank < worker.np; ++rank) {
    if (rank == worker.victim) continue;
    auto calls = read_calls(calls_file(worker.folder, rank));
    if (!calls.ok()) return calls.status();
    run.survivors.emplace(rank, std::move(calls).value());
  }
  return recovery_time(run);
}

Result<RecoveryTime> make_run(const ProgramFiles& files, RecoveryWorkerOptions worker) {
  ScratchFolder folder;
  if (Status status = ScratchFolder::make(folder); !status.ok()) return status;
  worker.folder = folder.path().string();
  std::vector<std::string> command{
      files.elasticrun.string(), "-np", std::to_string(worker.np), "--min-np", "1",
      "--max-restarts",          "0",   files.self.string()};
  for (auto& argument : worker_arguments(worker)) command.push_back(std::move(argument));
  const Status ended = run_child(command, folder.path() / "output", kRunDeadline);
  auto time = read_run(worker);
  // A short job can be over before elasticrun hears of the death, and it then calls the job failed.
  // What counts is that each survivor came to its end.
  if (ended.ok() || (time.ok() && ended.code() != Code::kTimeout)) return time;
  return time.ok() ? ended : ended.within(time.status().message());
}

/// All runs so far. Belongs to the main thread.
struct Totals {
  std::vector<double> recovery_ms;
  std::vector<double> undisturbed_ms;
  int committed = 0;

  void add(const RecoveryTime& time) {
    recovery_ms.push_back(time.recovery_ms);
    undisturbed_ms.push_back(time.undisturbed_ms);
    if (time.committed) ++committed;
  }
};

nlohmann::json row_of(const RecoveryOptions& options, const LibrarySettings& settings,
                      const Totals& totals) {
  const Summary summary = summarize(totals.recovery_ms);
  return {{"fault", options.fault},
          {"backend", settings.backend},
          {"transport", settings.transport},
          {"ranks", options.np},
          {"bytes", options.bytes},
          {"runs", options.runs},
          {"min_ms", summary.min},
          {"p50_ms", summary.median},
          {"p99_ms", summary.p99},
          {"max_ms", summary.max},
          {"undisturbed_ms", summarize(totals.undisturbed_ms).median},
          {"committed_runs", totals.committed},
          {"seed", options.seed}};
}

void print_header(const RecoveryOptions& options, const LibrarySettings& settings) {
  std::printf(
      "# elastic recovery: %d ranks, %zu bytes of int64, backend %s, transport %s, fault %s\n",
      options.np, options.bytes, settings.backend.c_str(), settings.transport.c_str(),
      options.fault.c_str());
  std::printf("# seed %" PRIu64 "\n#\n", options.seed);
  std::printf("# %6s %7s %7s %13s %13s\n", "run", "victim", "moment", "call (ms)", "recovery (ms)");
  std::fflush(stdout);
}

void print_summary(const Totals& totals) {
  const Summary summary = summarize(totals.recovery_ms);
  std::printf("#\n# recovery of %zu runs: min %.3f ms, p50 %.3f ms, p99 %.3f ms, max %.3f ms\n",
              totals.recovery_ms.size(), summary.min, summary.median, summary.p99, summary.max);
  std::printf("# undisturbed call: median %.3f ms\n", summarize(totals.undisturbed_ms).median);
  std::printf("# in %d runs the victim's part of the call was still counted\n", totals.committed);
  std::fflush(stdout);
}

}  // namespace

Status run_recovery(const RecoveryOptions& options, const LibrarySettings& settings) {
  auto files = program_files();
  if (!files.ok()) return files.status();
  print_header(options, settings);
  std::mt19937_64 random(options.seed);
  Totals totals;
  for (int run = 1; run <= options.runs; ++run) {
    RecoveryWorkerOptions worker{
        .np = options.np, .bytes = options.bytes, .transport = options.transport, .folder = {}};
    worker.victim = std::uniform_int_distribution<int>(0, options.np - 1)(random);
    worker.delay = std::uniform_real_distribution<double>(0, 1)(random);
    auto time = make_run(files.value(), worker);
    if (!time.ok()) return time.status().within("run " + std::to_string(run));
    std::printf("  %6d %7d %6.0f%% %13.3f %13.3f\n", run, worker.victim, worker.delay * 100,
                time.value().undisturbed_ms, time.value().recovery_ms);
    std::fflush(stdout);
    totals.add(time.value());
  }
  print_summary(totals);
  if (options.json.empty()) return {};
  const auto rows = nlohmann::json::array({row_of(options, settings, totals)});
  return write_report(options.json, options.command, rows);
}

}  // namespace elastic::bench
