#include "benchmarks/collective/collective_report.hpp"

#include <cstdio>
#include <string>

#include "benchmarks/collective/collective_plot.hpp"
#include "benchmarks/collective/table.hpp"
#include "benchmarks/peers/peer_names.hpp"
#include "benchmarks/report/element_names.hpp"
#include "benchmarks/report/report_files.hpp"

namespace elastic::bench {

namespace {

void print_line(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace

void CollectiveReport::begin(const std::string& peers) const {
  if (shows_) print_line(peers + table_header(options_, settings_, ranks_));
}

void CollectiveReport::add(const SizeResult& result) {
  for (const BackendResult& one : result.backends) {
    if (shows_) print_line(table_line(result.count, options_, one));
    for (const Placement placement : {Placement::kOutOfPlace, Placement::kInPlace}) {
      if (const auto& cell = one.at(placement)) {
        add_row(result.count, one.backend, placement, *cell);
      }
    }
  }
}

void CollectiveReport::add_row(std::size_t count, const std::string& backend, Placement placement,
                               const Cell& cell) {
  wrong_ += cell.wrong.value_or(0);
  busbw_sum_ += cell.busbw;
  const bool reduces = make_collective(options_.operation)->reduces();
  const bool peer = is_peer(backend);
  rows_.push_back(
      {{"operation", options_.operation},
       {"backend", backend},
       {"transport", peer ? "own" : settings_.transport},
       {"encrypt", !peer && settings_.encrypt.value_or(options_.encrypt)},
       {"memory", options_.device == "host" ? options_.memory : options_.device},
       {"ranks", ranks_},
       {"bytes", count * size_of(options_.dtype)},
       {"dtype", name_of(options_.dtype)},
       {"op", reduces ? nlohmann::ordered_json(name_of(options_.op)) : nlohmann::ordered_json()},
       {"in_place", placement == Placement::kInPlace},
       {"median_us", cell.time_us.median},
       {"p99_us", cell.time_us.p99},
       {"min_us", cell.time_us.min},
       {"algbw_gbs", cell.algbw},
       {"busbw_gbs", cell.busbw},
       {"ratio", cell.ratio},
       {"wrong", cell.wrong ? nlohmann::ordered_json(*cell.wrong) : nlohmann::ordered_json()}});
}

Status CollectiveReport::end(const Tuning& tuning) {
  network_.add(tuning);
  if (shows_) {
    const double mean_busbw = rows_.empty() ? 0 : busbw_sum_ / static_cast<double>(rows_.size());
    print_line(table_footer(wrong_, options_.check, mean_busbw));
    Status status =
        write_reports(options_, network_, rows_, [&] { return collective_plot(rows_); });
    if (!status.ok()) return status;
  }
  if (wrong_ == 0) return {};
  return Status(Code::kInternal, std::to_string(wrong_) + " elements of the results are wrong");
}

}  // namespace elastic::bench
