#include "benchmarks/steps/scaling_command_line.hpp"

#include "benchmarks/command_line_options.hpp"

namespace elastic::bench {

void ScalingCommandLine::add(CLI::App& app) {
  sub_ = app.add_subcommand(
      "scaling", "Speed-up and efficiency of training steps with a simulated computing time");
  add_rank_options(*sub_, options_);
  sub_->get_option("--np")->description(
      "Measure jobs of 1, 2 ... so many ranks on this machine; without it this is one rank of a "
      "job of elasticrun or mpirun, and only that is measured");
  add_plot(*sub_, options_.plot);
  add_model(*sub_, options_.model);
  sub_->add_option("--compute-ms", options_.compute_ms,
                   "Time that a step's computing takes, on a GPU as it were [170]")
      ->check(CLI::Range(0.1, 1e6));
  sub_->add_option("-n,--iters", options_.iterations, "Steps that are timed, of each kind [12]")
      ->check(CLI::Range(1, kMostCalls));
  sub_->add_option("-w,--warmup_iters", options_.warmup, "Steps before, not timed, in a turn [1]")
      ->check(CLI::Range(0, kMostCalls));
  sub_->add_option("--turns", options_.turns, "Turns of steps with and without the others [4]")
      ->check(CLI::Range(1, kMostCalls));
}

Result<ScalingOptions> ScalingCommandLine::read() const {
  if (options_.backends.size() > 1) {
    return invalid("--backend names several: scaling measures one at a time");
  }
  if (Status status = check_without_peers(options_, "scaling"); !status.ok()) return status;
  return options_;
}

}  // namespace elastic::bench
