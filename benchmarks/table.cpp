#include "benchmarks/table.hpp"

#include <cstdio>

#include "benchmarks/element_names.hpp"

namespace elastic::bench {

namespace {

template <typename... Values>
std::string formatted(const char* format, Values... values) {
  const int length = std::snprintf(nullptr, 0, format, values...);
  std::string text(static_cast<std::size_t>(length) + 1, '\0');
  std::snprintf(text.data(), text.size(), format, values...);
  text.pop_back();
  return text;
}

// Five digits that count, as nccl-tests has it.
int decimals(double value) {
  return value >= 1000 ? 1 : 2;
}

std::string cell_text(const Cell& cell) {
  const double time = cell.time_us.median;
  const std::string wrong = cell.wrong ? std::to_string(*cell.wrong) : "N/A";
  return formatted(" %9.*f %7.3f %7.3f %6s", decimals(time), time, cell.algbw, cell.busbw,
                   wrong.c_str());
}

}  // namespace

std::string table_header(const AllreduceOptions& options, const LibrarySettings& settings,
                         int ranks) {
  std::string text = formatted("# elastic allreduce: %d ranks, backend %s, transport %s%s\n", ranks,
                               settings.backend.c_str(), settings.transport.c_str(),
                               settings.encrypt.value_or(options.encrypt) ? ", encrypted" : "");
  text += formatted(
      "# time: median of %d calls after %d warm-up calls; each call's time is the mean over the "
      "ranks\n#\n",
      options.iterations, options.warmup);
  text += formatted("# %46s %32s %32s\n", "", "out-of-place", "in-place");
  const char* half = "     time   algbw   busbw #wrong";
  text += formatted("# %12s %14s %9s %8s %s %s\n", "size", "count", "type", "redop", half, half);
  const char* units = "     (us)  (GB/s)  (GB/s)       ";
  text += formatted("# %12s %14s %9s %8s %s %s", "(B)", "(elements)", "", "", units, units);
  return text;
}

std::string table_line(std::size_t count, DType dtype, ReduceOp op, const Cell& out_of_place,
                       const Cell& in_place) {
  return formatted("  %12zu %14zu %9s %8s", count * size_of(dtype), count, name_of(dtype),
                   name_of(op)) +
         cell_text(out_of_place) + cell_text(in_place);
}

std::string table_footer(std::int64_t wrong, bool checked, double mean_busbw) {
  const std::string verdict =
      !checked ? "not checked" : std::to_string(wrong) + (wrong == 0 ? " OK" : " FAILED");
  return "# Wrong values: " + verdict + formatted("\n# Avg bus bandwidth: %.3f", mean_busbw);
}

}  // namespace elastic::bench
