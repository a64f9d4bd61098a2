#include "benchmarks/steps/scaling.hpp"

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "benchmarks/job/backend_contexts.hpp"
#include "benchmarks/job/measured_job.hpp"
#include "benchmarks/job/turns.hpp"
#include "benchmarks/report/report_files.hpp"
#include "benchmarks/report/statistics.hpp"
#include "benchmarks/steps/scaling_plot.hpp"
#include "benchmarks/steps/step_probe.hpp"

namespace elastic::bench {

namespace {

nlohmann::ordered_json row_of(const ScalingOptions& options, const LibrarySettings& settings,
                              int ranks, const StepTimes& alone, const StepTimes& fused,
                              const StepTimes& unit, std::size_t kept_bytes) {
  const double alone_us = summarize(alone.last_us).median;
  const Summary step = summarize(fused.last_us);
  const double efficiency = alone_us / step.median;
  return {{"model", options.model},
          {"backend", settings.backends.front()},
          {"transport", settings.transport},
          {"encrypt", settings.encrypt.value_or(false)},
          {"ranks", ranks},
          {"compute_ms", options.compute_ms},
          {"alone_us", alone_us},
          {"median_us", step.median},
          {"p99_us", step.p99},
          {"min_us", step.min},
          {"speedup", efficiency * ranks},
          {"efficiency", efficiency},
          {"unit_us", summarize(unit.last_us).median},
          {"kept_bytes", kept_bytes}};
}

void print_header(const ScalingOptions& options) {
  std::printf("# elastic scaling: %s, %.1f ms of computing in each step\n", options.model.c_str(),
              options.compute_ms);
  std::printf(
      "# alone: a step without the others; step: with the gradients allreduced as they come;\n"
      "# medians of %d steps each (turns: %d), the means over the ranks; efficiency: alone by "
      "step;\n# unit: a step as one unit, by a StepGroup, which keeps inputs in so much "
      "memory\n#\n",
      options.iterations, options.turns);
  std::printf("# %6s %10s %10s %11s %11s %11s %8s %11s %11s %10s\n", "ranks", "backend",
              "transport", "alone (ms)", "step (ms)", "p99 (ms)", "speed-up", "efficiency",
              "unit (ms)", "kept (MB)");
}

void print_job(const nlohmann::ordered_json& row) {
  const auto number = [&](const char* key) { return row.at(key).get<double>(); };
  std::printf("  %6d %10s %10s %11.3f %11.3f %11.3f %8.2f %9.1f %% %11.3f %10.1f\n",
              row.at("ranks").get<int>(), row.at("backend").get<std::string>().c_str(),
              row.at("transport").get<std::string>().c_str(), number("alone_us") / 1e3,
              number("median_us") / 1e3, number("p99_us") / 1e3, number("speedup"),
              number("efficiency") * 100, number("unit_us") / 1e3, number("kept_bytes") / 1e6);
  std::fflush(stdout);
}

void print_references() {
  for (const ScalingReference& reference : kScalingReferences) {
    std::printf("# reference: %.0f %% at %d GPUs, a speed-up of %.2f: %s\n",
                reference.efficiency * 100, reference.ranks, reference.efficiency * reference.ranks,
                reference.source);
  }
}

Status write(const ScalingOptions& options, const NetworkRecord& network,
             const nlohmann::ordered_json& rows) {
  return write_reports(options, network, rows, [&] { return scaling_plot(rows); });
}

}  // namespace

Status run_scaling(const ScalingOptions& options, const LibrarySettings& settings) {
  auto contexts = open_contexts(options, settings);
  if (!contexts.ok()) return contexts.status();
  Context& context = *contexts.value().front().context;
  Gradients gradients(make_model(options.model), context.rank(), context.size());
  StepProbe probe(context, gradients,
                  std::chrono::nanoseconds(static_cast<std::int64_t>(options.compute_ms * 1e6)));
  NetworkRecord network;
  StepTimes alone;
  StepTimes fused;
  StepTimes unit;
  for (int turn = 0; turn < options.turns; ++turn) {
    const int steps = calls_in_turn(options.iterations, options.turns, turn);
    for (const auto& [kind, times] : {std::pair{StepKind::kAlone, &alone},
                                      {StepKind::kFused, &fused},
                                      {StepKind::kUnit, &unit}}) {
      Status status = probe.time(kind, options.warmup, steps, *times);
      if (!status.ok()) return status;
    }
  }
  network.add(context.tuning());
  if (context.rank() == 0) {
    const auto rows = nlohmann::ordered_json::array(
        {row_of(options, settings, context.size(), alone, fused, unit, gradients.kept_bytes())});
    print_header(options);
    print_job(rows.front());
    print_references();
    if (Status status = write(options, network, rows); !status.ok()) return status;
  }
  shut_down(contexts.value());
  return {};
}

Status run_scaling_jobs(const ScalingOptions& options) {
  NetworkRecord network;
  network.add({});  // no tuning, because the jobs are on this host
  print_header(options);
  auto rows = nlohmann::ordered_json::array();
  for (int ranks = 1; ranks <= options.np; ++ranks) {
    auto measured = run_measured_job({.ranks = ranks}, options);
    if (!measured.ok()) return measured.status();
    rows.push_back(measured.value().front());
    print_job(rows.back());
  }
  print_references();
  return write(options, network, rows);
}

}  // namespace elastic::bench
