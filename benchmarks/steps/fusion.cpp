#include "benchmarks/steps/fusion.hpp"

#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "benchmarks/collective/bandwidth.hpp"
#include "benchmarks/collective/collective.hpp"
#include "benchmarks/collective/collective_result.hpp"
#include "benchmarks/job/backend_contexts.hpp"
#include "benchmarks/job/turns.hpp"
#include "benchmarks/report/formatted.hpp"
#include "benchmarks/report/report_files.hpp"
#include "benchmarks/steps/gradient_step.hpp"
#include "benchmarks/steps/step_probe.hpp"

namespace elastic::bench {

namespace {

constexpr std::array kKinds{StepKind::kFused, StepKind::kWhole, StepKind::kBlocking};
constexpr std::size_t kFusedIndex = 0;
constexpr std::size_t kWholeIndex = 1;
constexpr int kAgreementsOfTurn = 50;

/// The results of one kind of step on one backend.
struct KindResult {
  StepTimes times;
  std::vector<double> agreement_us;  // kFused only
  std::optional<std::int64_t> wrong;
};
using BackendKinds = std::array<KindResult, kKinds.size()>;

/// Measures all kinds of steps on all backends, in turn. Owned by the main thread.
class FusionRun {
 public:
  FusionRun(const FusionOptions& options, const NetworkModel& model,
            const std::vector<BackendContext>& contexts, const RankDevice* device)
      : options_(options),
        gradients_(model, contexts.front().context->rank(), contexts.front().context->size(),
                   device),
        results_(contexts.size()) {
    for (const BackendContext& one : contexts) probes_.emplace_back(*one.context, gradients_);
  }

  Status measure();
  const std::vector<BackendKinds>& results() const { return results_; }

 private:
  Status check();

  const FusionOptions& options_;
  Gradients gradients_;
  std::vector<StepProbe> probes_;
  std::vector<BackendKinds> results_;
};

Status FusionRun::measure() {
  for (int turn = 0; turn < options_.turns; ++turn) {
    const int steps = calls_in_turn(options_.iterations, options_.turns, turn);
    for (std::size_t backend = 0; backend < probes_.size(); ++backend) {
      for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
        Status status = probes_[backend].time(kKinds[kind], options_.warmup, steps,
                                              results_[backend][kind].times);
        if (!status.ok()) return status;
      }
      Status status = probes_[backend].time_agreement(kAgreementsOfTurn,
                                                      results_[backend][kFusedIndex].agreement_us);
      if (!status.ok()) return status;
    }
  }
  return options_.check ? check() : Status();
}

Status FusionRun::check() {
  for (std::size_t backend = 0; backend < probes_.size(); ++backend) {
    for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
      auto wrong = probes_[backend].count_wrong(kKinds[kind]);
      if (!wrong.ok()) return wrong.status();
      results_[backend][kind].wrong = wrong.value();
    }
  }
  return {};
}

/// The report's row for one kind of step on one backend.
nlohmann::ordered_json row_of(const FusionOptions& options, const LibrarySettings& settings,
                              const NetworkModel& model, const BackendContext& backend,
                              std::size_t kind, const BackendKinds& own,
                              const BackendKinds& compared) {
  const int ranks = backend.context->size();
  const Summary time = summarize(own[kind].times.last_us);
  const double algbw = algorithm_bandwidth(model.count() * sizeof(float), time.median);
  return {{"model", options.model},
          {"tensors", model.parameters.size()},
          {"bytes", model.count() * sizeof(float)},
          {"backend", backend.label},
          {"transport", settings.transport},
          {"encrypt", settings.encrypt.value_or(false)},
          {"memory", options.device},
          {"ranks", ranks},
          {"step", name_of(kKinds[kind])},
          {"median_us", time.median},
          {"p99_us", time.p99},
          {"min_us", time.min},
          {"first_us", summarize(own[kind].times.first_us).median},
          {"algbw_gbs", algbw},
          {"busbw_gbs", algbw * make_collective("allreduce")->bus_factor(ranks)},
          {"by_whole", time.median / summarize(own[kWholeIndex].times.last_us).median},
          {"ratio", time.median / summarize(compared[kind].times.last_us).median},
          {"agreement_us", own[kind].agreement_us.empty()
                               ? nlohmann::ordered_json()
                               : nlohmann::ordered_json(summarize(own[kind].agreement_us).median)},
          {"wrong",
           own[kind].wrong ? nlohmann::ordered_json(*own[kind].wrong) : nlohmann::ordered_json()}};
}

void print_header(const FusionOptions& options, const LibrarySettings& settings,
                  const NetworkModel& model, int ranks) {
  std::printf(
      "# elastic fusion: %s, %zu tensors, %zu parameters (%.1f MiB), %d ranks, transport "
      "%s%s\n",
      model.name.c_str(), model.parameters.size(), model.count(),
      static_cast<double>(model.count() * sizeof(float)) / (1 << 20), ranks,
      settings.transport.c_str(), settings.encrypt.value_or(false) ? ", encrypted" : "");
  std::printf(
      "# fused: named, asynchronous, submitted in backward order from another thread; whole: one "
      "allreduce of as many bytes; blocking: a call for each tensor\n"
      "# times: of %d steps (turns: %d, with %d warm-up steps each); a step's time is the mean "
      "over "
      "the ranks\n"
      "# first: until the first tensor is reduced; by whole: median by that of one allreduce; "
      "ratio: by the same step of native, or of the first backend\n"
      "# agree: median of a named allreduce of one element: submitted, agreed upon by all ranks, "
      "run, and waited for\n#\n",
      options.iterations, options.turns, options.warmup);
  std::printf("# %10s %9s %9s %9s %9s %9s %7s %7s %6s %8s %6s %7s\n", "backend", "step", "median",
              "p99", "min", "first", "algbw", "busbw", "#wrong", "by whole", "ratio", "agree");
  std::printf("# %10s %9s %9s %9s %9s %9s %7s %7s %6s %8s %6s %7s\n", "", "", "(ms)", "(ms)",
              "(ms)", "(ms)", "(GB/s)", "(GB/s)", "", "", "", "(us)");
}

void print_step(const nlohmann::ordered_json& row) {
  const auto number = [&](const char* key) { return row.at(key).get<double>(); };
  const auto ms = [&](const char* key) { return number(key) / 1e3; };
  std::printf(
      "  %10s %9s %9.3f %9.3f %9.3f %9.3f %7.3f %7.3f %6s %8.2f %6.2f %7s\n",
      row.at("backend").get<std::string>().c_str(), row.at("step").get<std::string>().c_str(),
      ms("median_us"), ms("p99_us"), ms("min_us"), ms("first_us"), number("algbw_gbs"),
      number("busbw_gbs"), row.at("wrong").is_null() ? "N/A" : row.at("wrong").dump().c_str(),
      number("by_whole"), number("ratio"),
      row.at("agreement_us").is_null() ? "" : formatted("%.1f", number("agreement_us")).c_str());
}

}  // namespace

Status run_fusion(const FusionOptions& options, const LibrarySettings& settings) {
  auto contexts = open_contexts(options, settings);
  if (!contexts.ok()) return contexts.status();
  const std::vector<BackendContext>& backends = contexts.value();
  const NetworkModel model = make_model(options.model);
  const Context& first = *backends.front().context;
  const auto device = open_device(options.device, first);
  if (!device.ok()) return device.status();
  if (first.rank() == 0) {
    std::fputs(device_text(device.value().get()).c_str(), stdout);
    print_header(options, settings, model, first.size());
  }
  NetworkRecord network;
  FusionRun run(options, model, backends, device.value().get());
  if (Status status = run.measure(); !status.ok()) return status;
  network.add(first.tuning());
  auto rows = nlohmann::ordered_json::array();
  std::int64_t wrong = 0;
  const BackendKinds& compared = run.results()[compared_with(settings.backends)];
  for (std::size_t backend = 0; backend < backends.size(); ++backend) {
    const BackendKinds& own = run.results()[backend];
    for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
      rows.push_back(row_of(options, settings, model, backends[backend], kind, own, compared));
      wrong += own[kind].wrong.value_or(0);
      if (first.rank() == 0) print_step(rows.back());
    }
  }
  if (first.rank() == 0) {
    if (Status status = write_reports(options, network, rows); !status.ok()) return status;
  }
  shut_down(backends);
  if (wrong == 0) return {};
  return Status(Code::kInternal, std::to_string(wrong) + " elements of the results are wrong");
}

}  // namespace elastic::bench
