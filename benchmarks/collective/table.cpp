#include "benchmarks/collective/table.hpp"

#include <optional>

#include "benchmarks/report/element_names.hpp"
#include "benchmarks/report/formatted.hpp"

namespace elastic::bench {

namespace {

// The number of decimals that fit the column.
int decimals(double value) {
  return value >= 100'000 ? 0 : value >= 1000 ? 1 : 2;
}

std::string time_text(double us) {
  return formatted(" %8.*f", decimals(us), us);
}

std::string bandwidth_text(double gbs) {
  return formatted(" %6.*f", gbs >= 100 ? 1 : gbs >= 10 ? 2 : 3, gbs);
}

// The columns of one placement.
constexpr const char* kTitles = "   median      p99      min  algbw  busbw #wrong  ratio";
constexpr const char* kUnits = "     (us)     (us)     (us) (GB/s) (GB/s)              ";
constexpr int kWidth = 55;

std::string cell_text(const std::optional<Cell>& cell) {
  if (!cell) return formatted("%*s", kWidth, "N/A");
  const Summary& time = cell->time_us;
  const std::string wrong = cell->wrong ? std::to_string(*cell->wrong) : "N/A";
  return time_text(time.median) + time_text(time.p99) + time_text(time.min) +
         bandwidth_text(cell->algbw) + bandwidth_text(cell->busbw) +
         formatted(" %6s %6.2f", wrong.c_str(), cell->ratio);
}

std::string list_of(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + text;
  return list;
}

std::string ratio_explanation(const LibrarySettings& settings) {
  if (settings.backends.size() == 1) return "";
  return "# ratio: median by that of " + settings.backends[compared_with(settings.backends)] +
         ", which was measured in the same turns\n";
}

}  // namespace

std::string table_header(const CollectiveOptions& options, const LibrarySettings& settings,
                         int ranks) {
  std::string text =
      formatted("# elastic %s: %d ranks, backend %s, transport %s%s%s\n", options.operation.c_str(),
                ranks, list_of(settings.backends).c_str(), settings.transport.c_str(),
                settings.encrypt.value_or(options.encrypt) ? ", encrypted" : "",
                options.memory == "allocated" ? ", memory from elastic::allocate" : "");
  text += formatted(
      "# times: of %d calls (turns: %d, with %d warm-up calls each); a call's time is %s\n",
      options.iterations, options.turns, options.warmup,
      options.apart ? "that of the slowest rank, each after a barrier" : "the mean over the ranks");
  text += ratio_explanation(settings) + "#\n";
  text += formatted("# %54s %*s %*s\n", "", kWidth, "out-of-place", kWidth - 1, "in-place");
  text += formatted("# %11s %11s %8s %6s %14s%s%s\n", "size", "count", "type", "redop", "backend",
                    kTitles, kTitles);
  text +=
      formatted("# %11s %11s %8s %6s %14s%s%s", "(B)", "(elements)", "", "", "", kUnits, kUnits);
  return text;
}

std::string table_line(std::size_t count, const CollectiveOptions& options,
                       const BackendResult& result) {
  const bool reduces = make_collective(options.operation)->reduces();
  return formatted("  %11zu %11zu %8s %6s %14s", count * size_of(options.dtype), count,
                   name_of(options.dtype), reduces ? name_of(options.op) : "none",
                   result.backend.c_str()) +
         cell_text(result.at(Placement::kOutOfPlace)) + cell_text(result.at(Placement::kInPlace));
}

std::string table_footer(std::int64_t wrong, bool checked, double mean_busbw) {
  const std::string verdict =
      !checked ? "not checked" : std::to_string(wrong) + (wrong == 0 ? " OK" : " FAILED");
  return "# Wrong values: " + verdict + formatted("\n# Avg bus bandwidth: %.3f", mean_busbw);
}

}  // namespace elastic::bench
