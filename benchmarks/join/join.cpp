#include "benchmarks/join/join.hpp"

#include <cstdio>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "benchmarks/job/child_run.hpp"
#include "benchmarks/job/program_files.hpp"
#include "benchmarks/join/join_log.hpp"
#include "benchmarks/report/host_report.hpp"
#include "benchmarks/report/statistics.hpp"

namespace elastic::bench {

namespace {

constexpr std::chrono::milliseconds kJoinDeadline{300000};

Result<JoinTime> make_run(const ProgramFiles& files, const JoinOptions& options, int run) {
  ScratchFolder folder;
  if (Status status = ScratchFolder::make(folder); !status.ok()) return status;
  const JoinWorkerOptions worker{
      .np = options.np,
      .state_bytes = options.state_bytes,
      .transport = options.transport,
      .folder = folder.path().string(),
      .job = "join-" + std::to_string(::getpid()) + "-" + std::to_string(run)};
  std::vector<std::string> command{files.elasticrun.string(),
                                   "-np",
                                   std::to_string(options.np - 1),
                                   "--max-np",
                                   std::to_string(options.np),
                                   "--max-restarts",
                                   "0",
                                   "--job",
                                   worker.job,
                                   files.self.string()};
  for (auto& argument : worker_arguments(worker)) command.push_back(std::move(argument));
  if (Status ended = run_child(command, folder.path() / "output", kJoinDeadline); !ended.ok()) {
    return ended;
  }
  auto records = read_joins(folder.path());
  if (!records.ok()) return records.status();
  return join_time(records.value(), options.np);
}

/// The results of all runs so far. Owned by the main thread.
struct JoinTotals {
  std::vector<JoinTime> runs;

  Summary of(double JoinTime::*part) const {
    std::vector<double> values;
    for (const JoinTime& run : runs) values.push_back(run.*part);
    return summarize(std::move(values));
  }
  /// The median gap divided by the median broadcast.
  double ratio() const { return of(&JoinTime::gap_ms).median / of(&JoinTime::broadcast_ms).median; }
};

nlohmann::json row_of(const JoinOptions& options, const LibrarySettings& settings,
                      const JoinTotals& totals) {
  const Summary gap = totals.of(&JoinTime::gap_ms);
  return {{"backend", settings.backend},
          {"transport", settings.transport},
          {"encrypt", settings.encrypt.value_or(false)},
          {"np", options.np},
          {"state_bytes", options.state_bytes},
          {"runs", options.runs},
          {"gap_p50_ms", gap.median},
          {"gap_max_ms", gap.max},
          {"join_p50_ms", totals.of(&JoinTime::join_ms).median},
          {"broadcast_ms", totals.of(&JoinTime::broadcast_ms).median},
          {"ratio", totals.ratio()}};
}

}  // namespace

Status run_join(const JoinOptions& options, const LibrarySettings& settings) {
  NetworkRecord network;
  network.add({});  // no tuning, because the jobs are on this host
  auto files = program_files();
  if (!files.ok()) return files.status();
  std::printf(
      "# elastic join: a joiner to %d workers, %zu bytes of state, backend %s, transport "
      "%s%s\n#\n",
      options.np - 1, options.state_bytes, settings.backend.c_str(), settings.transport.c_str(),
      settings.encrypt.value_or(false) ? ", encrypted" : "");
  std::printf("# %6s %13s %13s %16s\n", "run", "gap (ms)", "join (ms)", "broadcast (ms)");
  JoinTotals totals;
  for (int run = 1; run <= options.runs; ++run) {
    auto time = make_run(files.value(), options, run);
    if (!time.ok()) return time.status().within("run " + std::to_string(run));
    totals.runs.push_back(time.value());
    std::printf("  %6d %13.3f %13.3f %16.3f\n", run, time.value().gap_ms, time.value().join_ms,
                time.value().broadcast_ms);
    std::fflush(stdout);
  }
  const Summary gap = totals.of(&JoinTime::gap_ms);
  std::printf("#\n# longest gap between two steps: p50 %.3f ms, max %.3f ms\n", gap.median,
              gap.max);
  std::printf("# from the joiner's start to its first step: p50 %.3f ms\n",
              totals.of(&JoinTime::join_ms).median);
  std::printf("# broadcast of as many bytes: %.3f ms; the gap is %.2f times that\n",
              totals.of(&JoinTime::broadcast_ms).median, totals.ratio());
  if (options.json.empty()) return {};
  const auto rows = nlohmann::json::array({row_of(options, settings, totals)});
  return write_report(options.json, options.command, rows, network);
}

}  // namespace elastic::bench
