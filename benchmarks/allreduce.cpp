#include "benchmarks/allreduce.hpp"

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "benchmarks/allreduce_probe.hpp"
#include "benchmarks/bandwidth.hpp"
#include "benchmarks/child_run.hpp"
#include "benchmarks/element_names.hpp"
#include "benchmarks/host_report.hpp"
#include "benchmarks/program_files.hpp"
#include "benchmarks/table.hpp"
#include "elastic/context.hpp"

namespace elastic::bench {

namespace {

void print_line(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

/// The table and the report of one measurement, on one rank; only rank 0 shows them. Belongs to the
/// main thread.
class Results {
 public:
  Results(const AllreduceOptions& options, const LibrarySettings& settings, int rank, int ranks)
      : options_(options), settings_(settings), rank_(rank), ranks_(ranks) {}

  void begin() const {
    if (rank_ == 0) print_line(table_header(options_, settings_, ranks_));
  }
  void add(std::size_t count, const Measurement& out_of_place, const Measurement& in_place);
  Status end() const;

 private:
  Cell cell_of(std::size_t bytes, const Measurement& measurement) const;
  nlohmann::json row_of(std::size_t bytes, const Cell& cell, bool in_place) const;

  const AllreduceOptions& options_;
  const LibrarySettings& settings_;
  const int rank_;
  const int ranks_;
  nlohmann::json rows_ = nlohmann::json::array();
  std::int64_t wrong_ = 0;
  double busbw_sum_ = 0;
};

Cell Results::cell_of(std::size_t bytes, const Measurement& measurement) const {
  Cell cell{.time_us = summarize(measurement.times_us), .wrong = measurement.wrong};
  cell.algbw = algorithm_bandwidth(bytes, cell.time_us.median);
  cell.busbw = bus_bandwidth(cell.algbw, ranks_);
  return cell;
}

nlohmann::json Results::row_of(std::size_t bytes, const Cell& cell, bool in_place) const {
  return {{"backend", settings_.backend},
          {"transport", settings_.transport},
          {"encrypt", settings_.encrypt.value_or(options_.encrypt)},
          {"ranks", ranks_},
          {"bytes", bytes},
          {"dtype", name_of(options_.dtype)},
          {"op", name_of(options_.op)},
          {"in_place", in_place},
          {"median_us", cell.time_us.median},
          {"p99_us", cell.time_us.p99},
          {"min_us", cell.time_us.min},
          {"algbw_gbs", cell.algbw},
          {"busbw_gbs", cell.busbw},
          {"wrong", cell.wrong ? nlohmann::json(*cell.wrong) : nlohmann::json()}};
}

void Results::add(std::size_t count, const Measurement& out_of_place, const Measurement& in_place) {
  const std::size_t bytes = count * size_of(options_.dtype);
  const Cell outside = cell_of(bytes, out_of_place);
  const Cell inside = cell_of(bytes, in_place);
  wrong_ += outside.wrong.value_or(0) + inside.wrong.value_or(0);
  busbw_sum_ += outside.busbw + inside.busbw;
  rows_.push_back(row_of(bytes, outside, false));
  rows_.push_back(row_of(bytes, inside, true));
  if (rank_ == 0) print_line(table_line(count, options_.dtype, options_.op, outside, inside));
}

Status Results::end() const {
  if (rank_ == 0) {
    const double mean_busbw = rows_.empty() ? 0 : busbw_sum_ / static_cast<double>(rows_.size());
    print_line(table_footer(wrong_, options_.check, mean_busbw));
    if (!options_.json.empty()) {
      Status status = write_report(options_.json, options_.command, rows_);
      if (!status.ok()) return status;
    }
  }
  if (wrong_ == 0) return {};
  return Status(Code::kInternal, std::to_string(wrong_) + " elements of the results are wrong");
}

}  // namespace

Status start_ranks(const AllreduceOptions& options) {
  auto files = program_files();
  if (!files.ok()) return files.status();
  const std::string np = std::to_string(options.np);
  std::vector<std::string> command{files.value().elasticrun.string(),
                                   "-np",
                                   np,
                                   "--min-np",
                                   np,
                                   "--max-restarts",
                                   "0",
                                   "--no-prefix",
                                   files.value().self.string()};
  for (auto& argument : rank_arguments(options)) command.push_back(std::move(argument));
  return become(command);
}

Status run_allreduce(const AllreduceOptions& options, const LibrarySettings& settings) {
  Options library;
  library.transport = settings.transport;
  library.encrypt = options.encrypt;
  Context context(library);
  const int rank = context.rank();
  AllreduceProbe probe(context, options);
  Results results(options, settings, rank, context.size());
  results.begin();
  for (const std::size_t size : sizes_of(options.sizes)) {
    const std::size_t count = size / size_of(options.dtype);
    const auto out_of_place = probe.measure(count, false);
    if (!out_of_place.ok()) return out_of_place.status();
    const auto in_place = probe.measure(count, true);
    if (!in_place.ok()) return in_place.status();
    results.add(count, out_of_place.value(), in_place.value());
  }
  Status status = results.end();
  context.shutdown();
  return status;
}

}  // namespace elastic::bench
