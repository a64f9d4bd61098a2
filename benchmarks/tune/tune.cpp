#include "benchmarks/tune/tune.hpp"

#include <cstdio>
#include <limits>
#include <string>

#include <nlohmann/json.hpp>

#include "benchmarks/job/backend_contexts.hpp"
#include "benchmarks/report/report_files.hpp"
#include "elastic/diagnostics.hpp"

namespace elastic::bench {

namespace {

bool unlimited(const Tuning::Choice& choice) {
  return choice.up_to_bytes == std::numeric_limits<std::size_t>::max();
}

void print_link(const char* where, const Tuning::Link& link) {
  if (link.latency_us == 0) return;
  std::printf("# %s: latency %.2f us, %.3f GB/s each way for each rank\n", where, link.latency_us,
              link.gigabytes_per_second);
}

void print(const Tuning& tuning, int ranks) {
  std::printf("# elastic tune: %d ranks, view %llu\n", ranks,
              static_cast<unsigned long long>(tuning.generation));
  print_link("inside a host", tuning.inside_hosts);
  print_link("between hosts", tuning.between_hosts);
  if (tuning.flows_opened > 0) {
    std::printf("# flows of a link between hosts: %d opened, %d used\n", tuning.flows_opened,
                tuning.flows_used);
  }
  std::printf("# segments of large tensors: %zu bytes\n#\n#%15s  algorithm\n", tuning.segment_bytes,
              "up to (B)");
  for (const Tuning::Choice& choice : tuning.allreduce) {
    const std::string size = unlimited(choice) ? "any size" : std::to_string(choice.up_to_bytes);
    std::printf("%16s  %s\n", size.c_str(), choice.algorithm.c_str());
  }
}

nlohmann::ordered_json rows_of(const Tuning& tuning, int ranks) {
  auto rows = nlohmann::ordered_json::array();
  for (const Tuning::Choice& choice : tuning.allreduce) {
    rows.push_back({{"ranks", ranks},
                    {"algorithm", choice.algorithm},
                    {"up_to_bytes", unlimited(choice) ? nlohmann::ordered_json()
                                                      : nlohmann::ordered_json(choice.up_to_bytes)},
                    {"segment_bytes", tuning.segment_bytes},
                    {"inside_latency_us", tuning.inside_hosts.latency_us},
                    {"inside_gbs", tuning.inside_hosts.gigabytes_per_second},
                    {"between_latency_us", tuning.between_hosts.latency_us},
                    {"between_gbs", tuning.between_hosts.gigabytes_per_second},
                    {"flows_opened", tuning.flows_opened},
                    {"flows_used", tuning.flows_used}});
  }
  return rows;
}

}  // namespace

Status run_tune(const TuneOptions& options, const LibrarySettings& settings) {
  auto contexts = open_contexts(options, settings);
  if (!contexts.ok()) return contexts.status();
  Context& context = *contexts.value().front().context;
  NetworkRecord network;
  // The library measures the links before the first operation, here a barrier.
  Status status = check_complete(context.barrier(), context.size());
  if (status.ok() && context.rank() == 0) {
    const Tuning tuning = context.tuning();
    print(tuning, context.size());
    network.add(tuning);
    status = write_reports(options, network, rows_of(tuning, context.size()));
  }
  if (status.ok()) shut_down(contexts.value());
  return status;
}

}  // namespace elastic::bench
