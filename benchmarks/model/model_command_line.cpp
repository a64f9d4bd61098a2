#include "benchmarks/model/model_command_line.hpp"

#include <cstddef>

#include "benchmarks/command_line_options.hpp"

namespace elastic::bench {
namespace {

constexpr int kMostHosts = 65536;
constexpr int kMostRanksPerHost = 256;
constexpr int kMostModelRanks = 65536;
constexpr int kMostFlows = 64;

}  // namespace

void ModelCommandLine::add(CLI::App& app) {
  sub_ = app.add_subcommand(
      "model", "Calculated time of an allreduce on a described network, by size; starts no ranks");
  sub_->option_defaults()->take_last();
  sub_->add_option("--hosts", options_.hosts, "Hosts [2]")->check(CLI::Range(1, kMostHosts));
  sub_->add_option("--ranks-per-host", options_.ranks_per_host, "Ranks on each host [1]")
      ->check(CLI::Range(1, kMostRanksPerHost));
  sub_->add_option("--network", options_.network,
                   "Name of a network, such as c5n.18xlarge, or path of a file that describes one")
      ->required();
  sub_->add_option("-b,--minbytes", min_bytes_, "Smallest tensor, in bytes; K, M, G [8]");
  sub_->add_option("-e,--maxbytes", max_bytes_, "Largest tensor [64M]");
  sub_->add_option("-f,--stepfactor", options_.sizes.factor, "From size to size [2]")
      ->check(CLI::Range(std::size_t{2}, std::size_t{1} << 30));
  sub_->add_option("--algorithm", algorithm_,
                   "chosen: the one that elastic chooses; cheapest: the one with the least "
                   "calculated time; or one of those of ELASTIC_ALGORITHM [chosen]");
  sub_->add_option("--flows", options_.flows,
                   "TCP connections of a link between hosts [as many as elastic uses]")
      ->check(CLI::Range(1, kMostFlows));
  sub_->add_option("--threads", options_.threads,
                   "As if so many threads of a rank shared what goes over TCP [as many as elastic "
                   "takes on hosts with so many cores]")
      ->check(CLI::Range(1, kMostFlows));
  sub_->add_flag("--ignore-processor", options_.ignores_processor,
                 "As if cores and memory had no limit: what the network alone allows");
  add_json(*sub_, options_.json);
}

Result<ModelOptions> ModelCommandLine::read() {
  SizeRange& sizes = options_.sizes;
  if (Status status = read_bytes("-b", min_bytes_, sizes.min); !status.ok()) return status;
  if (Status status = read_bytes("-e", max_bytes_, sizes.max); !status.ok()) return status;
  if (sizes.max < sizes.min) {
    return invalid("-e " + max_bytes_ + " is less than -b " + min_bytes_);
  }
  if (sizes.min < sizeof(float)) {
    return invalid("-b " + min_bytes_ + " is less than one element: elements have 4 bytes");
  }
  if (options_.hosts * options_.ranks_per_host > kMostModelRanks) {
    return invalid("--hosts " + std::to_string(options_.hosts) + " with --ranks-per-host " +
                   std::to_string(options_.ranks_per_host) + " are more than " +
                   std::to_string(kMostModelRanks) + " ranks");
  }
  if (options_.hosts * options_.ranks_per_host < 2) {
    return invalid("a single rank sends nothing: give more --hosts or --ranks-per-host");
  }
  options_.cheapest = algorithm_ == "cheapest";
  options_.algorithm = plan::algorithm_named(algorithm_);
  if (!options_.algorithm && !options_.cheapest && algorithm_ != "chosen") {
    return invalid("--algorithm " + algorithm_ + ": give chosen, cheapest, or one of " +
                   plan::algorithm_names());
  }
  return options_;
}

}  // namespace elastic::bench
