#include "benchmarks/tune/tune_command_line.hpp"

#include "benchmarks/command_line_options.hpp"

namespace elastic::bench {

void TuneCommandLine::add(CLI::App& app) {
  sub_ = app.add_subcommand(
      "tune",
      "Measured latency and bandwidth of the links between ranks, and the algorithms chosen");
  add_rank_options(*sub_, options_);
}

Result<TuneOptions> TuneCommandLine::read() const {
  if (options_.backends.size() > 1 ||
      (options_.backends.size() == 1 && options_.backends.front() != "native")) {
    return invalid("--backend: tune is about the backend native");
  }
  return options_;
}

}  // namespace elastic::bench
