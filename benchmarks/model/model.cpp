#include "benchmarks/model/model.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "benchmarks/collective/bandwidth.hpp"
#include "benchmarks/job/program_files.hpp"
#include "benchmarks/report/output_file.hpp"
#include "collectives/model/network_file.hpp"
#include "collectives/model/price.hpp"
#include "collectives/transport/flow_count.hpp"

namespace elastic::bench {
namespace {

using model::Job;
using model::Network;
using model::Price;

plan::Hosts blocks(const ModelOptions& options) {
  std::vector<int> host_of_rank;
  for (int rank = 0; rank < options.hosts * options.ranks_per_host; ++rank) {
    host_of_rank.push_back(rank / options.ranks_per_host);
  }
  return plan::Hosts(host_of_rank);
}

/// The row of one size.
struct Row {
  std::size_t bytes = 0;
  std::string algorithm;
  Price price;
  double algbw = 0;  // GB/s
  double busbw = 0;
  double share = 0;  // of the time that the line would take at least, by the time
};

/// The least that any algorithm sends over each line, by the tensor: with one rank on each host
/// what nccl-tests multiplies by.
double least_sent(int count) {
  return 2.0 * (count - 1) / count;
}

const char* limit_of(const Price& price) {
  constexpr double kMostly = 0.7;
  const double most = std::max({price.line, price.thread, price.cores, price.memory});
  if (most < kMostly) return "latency";
  if (most == price.line) return "line";
  if (most == price.thread) return "thread";
  return most == price.cores ? "cores" : "memory";
}

/// As the library chooses them.
double threads_chosen(const Network& network, int ranks_per_host) {
  constexpr double kMostCores = 1 << 16;
  const auto cores = static_cast<std::size_t>(std::min(network.host.cores, kMostCores));
  return static_cast<double>(transport::threads_per_lane({.of_host = cores, .usable = cores},
                                                         static_cast<std::size_t>(ranks_per_host)));
}

Result<Network> read_network(const ModelOptions& options) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto folder = self.parent_path().parent_path() / "share" / "elastic" / "networks";
  auto network = model::read_network(options.network, folder);
  if (!network.ok()) return network.status().within("--network");
  double& threads = network.value().processor.threads;
  if (options.threads > 0) threads = options.threads;
  if (threads == 0) threads = threads_chosen(network.value(), options.ranks_per_host);
  if (options.ignores_processor) {
    network.value().processor = {};
    network.value().host.cores = network.value().host.memory_rate = model::kUnlimited;
  }
  return network;
}

Row row_of(const ModelOptions& options, const Network& network, const Job& job, std::size_t size) {
  const plan::Elements elements{size / sizeof(float), sizeof(float)};
  const std::size_t bytes = elements.count * elements.bytes;
  const auto algorithm = options.algorithm  ? *options.algorithm
                         : options.cheapest ? model::cheapest(network, job, elements)
                                            : model::chosen(job, bytes);
  Row row{.bytes = bytes,
          .algorithm = plan::name(algorithm),
          .price = model::price(network, job, algorithm, elements)};
  row.algbw = algorithm_bandwidth(bytes, row.price.seconds * 1e6);
  row.busbw = row.algbw * least_sent(job.hosts.size());
  if (job.hosts.count() > 1) {
    row.share = row.algbw * 1e9 * least_sent(job.hosts.count()) / network.line.rate;
  }
  return row;
}

void print_header(const ModelOptions& options, const Network& network, const Job& job) {
  std::printf("# elastic model: %d ranks on %d hosts, network %s: %s\n", job.hosts.size(),
              job.hosts.count(), network.name.c_str(), network.about.c_str());
  const std::string as_if =
      options.ignores_processor
          ? fmt::format(", for the network alone. flows of a link: {}", job.flows)
          : fmt::format(". flows of a link: {}, threads of a rank: {}", job.flows,
                        network.processor.threads);
  std::printf("# calculated, not measured%s, segments: %zu bytes\n", as_if.c_str(),
              job.segment_bytes);
  std::printf("# share: of what the line allows, %.4g GB/s each way by 2 (hosts - 1) / hosts\n#\n",
              network.line.rate / 1e9);
  std::printf("# %11s %12s %18s %12s %7s %7s %7s %8s\n", "size", "count", "algorithm", "time",
              "algbw", "busbw", "share", "limit");
  std::printf("# %11s %12s %18s %12s %7s %7s %7s %8s\n", "(B)", "(elements)", "", "(us)", "(GB/s)",
              "(GB/s)", "(%)", "");
}

void print(const Row& row) {
  std::printf("  %11zu %12zu %18s %12.2f %7.3f %7.3f %7.1f %8s\n", row.bytes,
              row.bytes / sizeof(float), row.algorithm.c_str(), row.price.seconds * 1e6, row.algbw,
              row.busbw, 100 * row.share, limit_of(row.price));
  std::fflush(stdout);
}

nlohmann::ordered_json report(const ModelOptions& options, const Network& network, const Job& job,
                              const std::vector<Row>& rows) {
  auto results = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    results.push_back({{"bytes", row.bytes},
                       {"algorithm", row.algorithm},
                       {"us", row.price.seconds * 1e6},
                       {"algbw_gbs", row.algbw},
                       {"busbw_gbs", row.busbw},
                       {"share", row.share},
                       {"limit", limit_of(row.price)}});
  }
  return {{"command", options.command},   {"network", network.name},
          {"hosts", job.hosts.count()},   {"ranks", job.hosts.size()},
          {"flows_per_link", job.flows},  {"segment_bytes", job.segment_bytes},
          {"results", std::move(results)}};
}

}  // namespace

Status run_model(const ModelOptions& options) {
  const auto network = read_network(options);
  if (!network.ok()) return network.status();
  if (!options.json.empty()) {
    if (Status status = check_writable("--json", options.json); !status.ok()) return status;
  }
  Job job = model::tuned_job(network.value(), blocks(options), options.flows);
  job.thresholds.algorithm = options.algorithm;
  if (options.algorithm && !plan::can_do(*options.algorithm, job.hosts, job.thresholds)) {
    return Status(Code::kInvalidArgument,
                  std::string("--algorithm ") + plan::name(*options.algorithm) +
                      " cannot be run by these ranks: choose another, or other hosts");
  }
  print_header(options, network.value(), job);
  std::vector<Row> rows;
  for (const std::size_t size : sizes_of(options.sizes)) {
    rows.push_back(row_of(options, network.value(), job, size));
    print(rows.back());
  }
  if (options.json.empty()) return {};
  return write_file("--json", options.json,
                    report(options, network.value(), job, rows).dump(2) + "\n");
}

}  // namespace elastic::bench
