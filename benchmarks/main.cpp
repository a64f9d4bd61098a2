#include <cstdio>
#include <exception>
#include <string>
#include <variant>
#include <vector>

#include "base/config/environment.hpp"
#include "benchmarks/collective/collective_run.hpp"
#include "benchmarks/collective/encryption_cost.hpp"
#include "benchmarks/command_line.hpp"
#include "benchmarks/job/rank_device.hpp"
#include "benchmarks/job/rank_start.hpp"
#include "benchmarks/join/join.hpp"
#include "benchmarks/join/join_worker.hpp"
#include "benchmarks/model/model.hpp"
#include "benchmarks/recovery/recovery.hpp"
#include "benchmarks/recovery/recovery_worker.hpp"
#include "benchmarks/report/output_file.hpp"
#include "benchmarks/report/report_files.hpp"
#include "benchmarks/sparse/sparse.hpp"
#include "benchmarks/steps/fusion.hpp"
#include "benchmarks/steps/scaling.hpp"
#include "benchmarks/tune/tune.hpp"
#include "elastic/error.hpp"

namespace {

using namespace elastic;
using namespace elastic::bench;

constexpr int kFailure = 1;
constexpr int kUsageError = 2;

int exit_code(const Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "elastic-bench: %s\n", status.message().c_str());
  return status.code() == Code::kInvalidArgument ? kUsageError : kFailure;
}

// Runs a measurement: checks its report file and reads the library's settings first.
template <typename MeasurementOptions>
Status measure(const MeasurementOptions& options,
               Status (*run)(const MeasurementOptions&, const LibrarySettings&)) {
  auto settings = library_settings(options.transport, read_environment());
  if (!settings.ok()) return settings.status();
  if (!options.json.empty()) {
    if (Status status = check_writable("--json", options.json); !status.ok()) return status;
  }
  return run(options, settings.value());
}

/// Runs a measurement whose ranks this program starts (--np) or another launcher has started.
template <typename MeasurementOptions>
Status measure_as_rank(const MeasurementOptions& options,
                       Status (*run)(const MeasurementOptions&, const LibrarySettings&)) {
  auto settings = library_settings(options, read_environment());
  if (!settings.ok()) return settings.status();
  if (Status status = check_writable(options); !status.ok()) return status;
  if (options.device == "cuda") {
    if (Status status = RankDevice::check(); !status.ok()) return status;
  }
  if (options.np > 0) return start_ranks(options.np, rank_arguments(options));
  return run(options, settings.value());
}

/// Runs a measurement that starts one job after another.
template <typename MeasurementOptions>
Status measure_in_jobs(const MeasurementOptions& options,
                       Status (*run)(const MeasurementOptions&)) {
  if (Status status = check_writable(options); !status.ok()) return status;
  return run(options);
}

Status run(const Request& request) {
  if (const auto* text = std::get_if<PrintAndExit>(&request)) {
    std::fputs(text->text.c_str(), stdout);
    return {};
  }
  if (const auto* collective = std::get_if<CollectiveOptions>(&request)) {
    const bool compares = collective->np > 0 && collective->encrypt;
    return compares ? measure_in_jobs(*collective, run_encryption_cost)
                    : measure_as_rank(*collective, run_collective);
  }
  if (const auto* fusion = std::get_if<FusionOptions>(&request)) {
    return measure_as_rank(*fusion, run_fusion);
  }
  if (const auto* scaling = std::get_if<ScalingOptions>(&request)) {
    return scaling->np > 0 ? measure_in_jobs(*scaling, run_scaling_jobs)
                           : measure_as_rank(*scaling, run_scaling);
  }
  if (const auto* tune = std::get_if<TuneOptions>(&request)) {
    return measure_as_rank(*tune, run_tune);
  }
  if (const auto* sparse = std::get_if<SparseOptions>(&request)) {
    return measure_as_rank(*sparse, run_sparse);
  }
  if (const auto* model = std::get_if<ModelOptions>(&request)) return run_model(*model);
  if (const auto* recovery = std::get_if<RecoveryOptions>(&request)) {
    return measure(*recovery, run_recovery);
  }
  if (const auto* join = std::get_if<JoinOptions>(&request)) return measure(*join, run_join);
  if (const auto* worker = std::get_if<JoinWorkerOptions>(&request)) {
    return run_join_worker(*worker);
  }
  return run_recovery_worker(std::get<RecoveryWorkerOptions>(request));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto request = parse_command_line({argv + 1, argv + argc});
    if (!request.ok()) return exit_code(request.status());
    return exit_code(run(request.value()));
  } catch (const Error& error) {
    std::fprintf(stderr, "elastic-bench: %s\n", error.what());
    return error.code() == ErrorCode::kInvalidArgument ? kUsageError : kFailure;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "elastic-bench: %s\n", error.what());
    return kFailure;
  }
}
