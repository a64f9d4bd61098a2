#include "benchmarks/steps/fusion_command_line.hpp"

#include "benchmarks/command_line_options.hpp"
#include "benchmarks/steps/network_model.hpp"

namespace elastic::bench {

void FusionCommandLine::add(CLI::App& app) {
  sub_ = app.add_subcommand(
      "fusion", "Time of a network's gradients: fused, as one tensor, and a call for each");
  add_device(*sub_, options_.device);
  add_rank_options(*sub_, options_);
  add_model(*sub_, options_.model);
  sub_->add_option("-n,--iters", options_.iterations, "Steps that are timed, of each kind [20]")
      ->check(CLI::Range(1, kMostCalls));
  sub_->add_option("-w,--warmup_iters", options_.warmup, "Steps before, not timed, in a turn [2]")
      ->check(CLI::Range(0, kMostCalls));
  sub_->add_option("--turns", options_.turns, "Turns that each kind and backend takes [4]")
      ->check(CLI::Range(1, kMostCalls));
  sub_->add_option("-c,--check", options_.check, "Check the results, 0 or 1 [1]");
}

Result<FusionOptions> FusionCommandLine::read() const {
  if (Status status = check_without_peers(options_, "fusion"); !status.ok()) return status;
  return options_;
}

}  // namespace elastic::bench
