#include "benchmarks/collective/collective_command_line.hpp"

#include "benchmarks/collective/collective.hpp"
#include "benchmarks/command_line_options.hpp"

namespace elastic::bench {

void CollectiveCommandLine::add(CLI::App& app) {
  options_.operation.clear();
  for (const std::string& name : collective_names()) add_operation(app, name);
}

void CollectiveCommandLine::add_operation(CLI::App& app, const std::string& name) {
  CLI::App& sub = *app.add_subcommand(name, "Time and bandwidth of " + name + " by size");
  sub.callback([this, name] { options_.operation = name; });
  sub.option_defaults()->take_last();
  sub.add_option("-b,--minbytes", min_bytes_, "Smallest tensor, in bytes; K, M, G [8]");
  sub.add_option("-e,--maxbytes", max_bytes_, "Largest tensor [64M]");
  auto* factor = sub.add_option("-f,--stepfactor", options_.sizes.factor, "From size to size [2]")
                     ->check(CLI::Range(std::size_t{2}, std::size_t{1} << 30));
  sub.add_option("-i,--stepbytes", increment_, "From size to size, instead of a factor")
      ->excludes(factor);
  sub.add_option("-n,--iters", options_.iterations,
                 "Calls that are timed, for each size and backend [20]")
      ->check(CLI::Range(1, kMostCalls));
  sub.add_option("-w,--warmup_iters", options_.warmup, "Calls before, not timed, in each turn [5]")
      ->check(CLI::Range(0, kMostCalls));
  sub.add_option("--turns", options_.turns,
                 "Turns that each backend takes at a size [4, or 1 if it is the only one]")
      ->check(CLI::Range(1, kMostCalls));
  sub.add_option("-c,--check", options_.check, "Check the results, 0 or 1 [1]");
  sub.add_flag("--apart", options_.apart,
               "Each call after a barrier, which is not timed; its time is the slowest rank's");
  add_named(sub, "-d,--datatype", options_.dtype, all_dtypes(), "Element type [float]");
  if (make_collective(name)->reduces()) {
    add_named(sub, "-o,--op", options_.op, all_ops(), "Reduction [sum]");
  }
  sub.add_option("--memory", options_.memory,
                 "Allocation of the tensors: malloc, or allocated (elastic::allocate) [malloc]")
      ->check(CLI::IsMember({"malloc", "allocated"}));
  add_device(sub, options_.device);
  add_rank_options(sub, options_);
  add_plot(sub, options_.plot);
  sub.add_flag("--encrypt", options_.encrypt,
               "With --np: each size in the clear and under TLS, side by side, over tcp. Without: "
               "under TLS");
}

namespace {

Status check_device(const CollectiveOptions& options) {
  if (options.device == "host") return {};
  if (options.memory == "malloc") return {};
  return invalid("--memory " + options.memory + " is about memory of the host, and --device " +
                 options.device + " has none");
}

}  // namespace

Result<CollectiveOptions> CollectiveCommandLine::read() {
  SizeRange& sizes = options_.sizes;
  if (Status status = read_bytes("-b", min_bytes_, sizes.min); !status.ok()) return status;
  if (Status status = read_bytes("-e", max_bytes_, sizes.max); !status.ok()) return status;
  if (!increment_.empty()) {
    Status status = read_bytes("-i", increment_, sizes.increment);
    if (!status.ok()) return status;
  }
  if (sizes.max < sizes.min) {
    return invalid("-e " + max_bytes_ + " is less than -b " + min_bytes_);
  }
  if (sizes.min < size_of(options_.dtype)) {
    return invalid("-b " + min_bytes_ + " is less than one element of -d " +
                   name_of(options_.dtype));
  }
  if (options_.dtype == DType::kBool && options_.op == ReduceOp::kAverage) {
    return invalid("bools have no average: choose another -o");
  }
  if (Status status = check_device(options_); !status.ok()) return status;
  if (Status status = check_rank_options(options_); !status.ok()) return status;
  if (options_.turns == 0) options_.turns = options_.backends.size() > 1 ? 4 : 1;
  if (options_.encrypt && options_.np > 0) {
    const std::string what = "the cost of encryption, with --encrypt and --np,";
    if (Status status = check_without_peers(options_, what); !status.ok()) return status;
    if (options_.transport.empty()) options_.transport = "tcp";
    if (options_.transport != "tcp") {
      return invalid("--encrypt with --transport " + options_.transport +
                     ": only tcp is encrypted");
    }
  }
  return options_;
}

}  // namespace elastic::bench
