#include "benchmarks/collective/encryption_cost.hpp"

#include <cstdio>
#include <string>

#include <nlohmann/json.hpp>

#include "benchmarks/collective/collective_plot.hpp"
#include "benchmarks/job/measured_job.hpp"
#include "benchmarks/report/report_files.hpp"

namespace elastic::bench {

namespace {

/// Measures one size in a job, and returns the rows of its report.
Result<nlohmann::ordered_json> measure(const CollectiveOptions& options, std::size_t size,
                                       bool encrypt) {
  const std::string bytes = std::to_string(size);
  // The ranks do not get --encrypt: MeasuredJob::encrypt passes it to the launcher.
  auto rows = run_measured_job(
      {.ranks = options.np,
       .encrypt = encrypt,
       .arguments = {"--encrypt=false", "--transport", "tcp", "-b", bytes, "-e", bytes}},
      options);
  if (!rows.ok() || rows.value().at(0).at("encrypt") == encrypt) return rows;
  return Status(Code::kInvalidArgument,
                "ELASTIC_ENCRYPT is set in the environment, so that there is nothing to compare: "
                "unset it");
}

double number(const nlohmann::ordered_json& rows, const char* column) {
  return rows.at(0).at(column).get<double>();  // out of place, if the operation offers that
}

void print_line(const nlohmann::ordered_json& plain, const nlohmann::ordered_json& encrypted) {
  const double ratio = number(encrypted, "median_us") / number(plain, "median_us");
  std::printf("  %12.0f %12.1f %10.3f %12.1f %10.3f %7.2f\n", number(plain, "bytes"),
              number(plain, "median_us"), number(plain, "busbw_gbs"),
              number(encrypted, "median_us"), number(encrypted, "busbw_gbs"), ratio);
  std::fflush(stdout);
}

}  // namespace

Status run_encryption_cost(const CollectiveOptions& options) {
  NetworkRecord network;
  network.add({});  // no tuning, because the jobs are on this host
  std::printf("# elastic %s: %d ranks, transport tcp, in the clear and under TLS\n",
              options.operation.c_str(), options.np);
  std::printf("# %12s %12s %10s %12s %10s %7s\n", "size", "clear", "busbw", "TLS", "busbw",
              "ratio");
  std::printf("# %12s %12s %10s %12s %10s %7s\n", "(B)", "(us)", "(GB/s)", "(us)", "(GB/s)", "");
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const std::size_t size : sizes_of(options.sizes)) {
    auto plain = measure(options, size, false);
    if (!plain.ok()) return plain.status();
    auto encrypted = measure(options, size, true);
    if (!encrypted.ok()) return encrypted.status();
    print_line(plain.value(), encrypted.value());
    for (const auto& rows : {plain.value(), encrypted.value()}) {
      all.insert(all.end(), rows.begin(), rows.end());
    }
  }
  return write_reports(options, network, all, [&] { return collective_plot(all); });
}

}  // namespace elastic::bench
