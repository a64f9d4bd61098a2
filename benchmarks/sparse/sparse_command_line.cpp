#include "benchmarks/sparse/sparse_command_line.hpp"

#include "benchmarks/command_line_options.hpp"

namespace elastic::bench {

namespace {

constexpr std::size_t kMostRows = std::size_t{1} << 30;

}  // namespace

void SparseCommandLine::add(CLI::App& app) {
  sub_ = app.add_subcommand(
      "sparse", "Time of a sparse_allreduce by the share of rows: gathered, dense, and as chosen");
  add_rank_options(*sub_, options_);
  sub_->add_option("--rows", options_.rows, "Rows of the tensor [65536]")
      ->check(CLI::Range(std::size_t{1}, kMostRows));
  sub_->add_option("--width", options_.width, "Elements of a row, which are floats [64]")
      ->check(CLI::Range(std::size_t{1}, kMostRows));
  sub_->add_option("--shares", options_.shares,
                   "Per cent of the rows that each rank gives [0.1,1,3,10,20,30,50,70,100]")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 100.0));
  sub_->add_option("-n,--iters", options_.iterations, "Calls that are timed, of each form [10]")
      ->check(CLI::Range(1, kMostCalls));
  sub_->add_option("-w,--warmup_iters", options_.warmup, "Calls before, not timed [2]")
      ->check(CLI::Range(0, kMostCalls));
}

Result<SparseOptions> SparseCommandLine::read() const {
  if (Status status = check_without_peers(options_, "sparse"); !status.ok()) return status;
  if (options_.backends.size() > 1) return invalid("--backend: sparse takes one backend");
  return options_;
}

}  // namespace elastic::bench
