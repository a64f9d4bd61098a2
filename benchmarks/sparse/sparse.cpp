#include "benchmarks/sparse/sparse.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "benchmarks/job/backend_contexts.hpp"
#include "benchmarks/job/monotonic_time.hpp"
#include "benchmarks/report/report_files.hpp"
#include "benchmarks/report/statistics.hpp"
#include "elastic/sparse_allreduce.hpp"

namespace elastic::bench {

namespace {

constexpr std::array kForms{SparseForm::kGathered, SparseForm::kDense, SparseForm::kChosen};

/// The rows of this rank: some of all, in ascending order, with small whole numbers in them, so
/// that sums are exact in any order.
struct Rows {
  std::vector<std::int64_t> indices;
  std::vector<float> values;
};

Rows some_rows(const SparseOptions& options, double share, int rank) {
  std::vector<std::int64_t> all(options.rows);
  std::iota(all.begin(), all.end(), std::int64_t{0});
  const auto count =
      static_cast<std::size_t>(std::lround(share / 100 * static_cast<double>(options.rows)));
  Rows rows;
  std::mt19937_64 random(static_cast<std::uint64_t>(rank));
  std::ranges::sample(all, std::back_inserter(rows.indices), static_cast<std::ptrdiff_t>(count),
                      random);
  rows.values.assign(count * options.width, static_cast<float>(rank + 1));
  return rows;
}

/// The times with one share of rows.
struct Measured {
  std::array<double, kForms.size()> median_us{};
  std::size_t of_all = 0;  ///< rows that some rank gave
  std::int64_t wrong = 0;  ///< results that differ from the gathered one
};

class ShareRun {
 public:
  ShareRun(const SparseOptions& options, Context& context, double share)
      : context_(context),
        rows_(some_rows(options, share, context.rank())),
        view_{rows_.indices, view(std::span(std::as_const(rows_.values))), options.width,
              options.rows} {}

  /// The forms take turns, so that what else the machine does disturbs all of them.
  Result<Measured> measure(int warmup, int iterations) {
    Measured measured;
    std::array<std::vector<double>, kForms.size()> times;
    for (int call = 0; call < warmup + iterations; ++call) {
      for (std::size_t form = 0; form < kForms.size(); ++form) {
        context_.barrier();
        const std::int64_t begin = now_ns();
        const SparseRows sums = sparse_allreduce(context_, view_, ReduceOp::kSum, kForms[form]);
        double us = static_cast<double>(now_ns() - begin) / 1e3;
        if (Status status = check_complete(sums.contributors, context_.size()); !status.ok()) {
          return status;
        }
        us = context_.allreduce(us, ReduceOp::kMax);  // the call ends with its last rank
        if (call >= warmup) times[form].push_back(us);
        measured.wrong += compare(sums);
      }
    }
    for (std::size_t form = 0; form < kForms.size(); ++form) {
      measured.median_us[form] = summarize(times[form]).median;
    }
    measured.of_all = expected_.indices.size();
    return measured;
  }

 private:
  /// The first result is the gathered one.
  std::int64_t compare(const SparseRows& sums) {
    if (expected_.contributors.size() == 0) expected_ = sums;
    return sums.indices == expected_.indices && sums.values == expected_.values ? 0 : 1;
  }

  Context& context_;
  const Rows rows_;
  const SparseRowsView view_;
  SparseRows expected_;
};

nlohmann::ordered_json row_of(const SparseOptions& options, const LibrarySettings& settings,
                              const BackendContext& backend, double share,
                              const Measured& measured) {
  return {{"backend", backend.label},
          {"transport", settings.transport},
          {"encrypt", settings.encrypt.value_or(false)},
          {"ranks", backend.context->size()},
          {"rows", options.rows},
          {"width", options.width},
          {"share", share / 100},
          {"of_all", static_cast<double>(measured.of_all) / static_cast<double>(options.rows)},
          {"gathered_us", measured.median_us[0]},
          {"dense_us", measured.median_us[1]},
          {"chosen_us", measured.median_us[2]},
          {"by_dense", measured.median_us[0] / measured.median_us[1]},
          {"wrong", measured.wrong}};
}

void print(const nlohmann::ordered_json& row) {
  const auto number = [&](const char* key) { return row.at(key).get<double>(); };
  std::printf("  %8.2f %8.1f %12.3f %10.3f %10.3f %9.2f %6s\n", 100 * number("share"),
              100 * number("of_all"), number("gathered_us") / 1e3, number("dense_us") / 1e3,
              number("chosen_us") / 1e3, number("by_dense"), row.at("wrong").dump().c_str());
}

}  // namespace

Status run_sparse(const SparseOptions& options, const LibrarySettings& settings) {
  auto contexts = open_contexts(options, settings);
  if (!contexts.ok()) return contexts.status();
  const BackendContext& backend = contexts.value().front();
  Context& context = *backend.context;
  const bool is_first = context.rank() == 0;
  if (is_first) {
    std::printf("# elastic sparse: %zu rows of %zu float, %d ranks, transport %s\n#\n",
                options.rows, options.width, context.size(), settings.transport.c_str());
    std::printf("# rank (%%)  all (%%) gathered(ms)  dense(ms) chosen(ms)  by dense  wrong\n");
  }
  NetworkRecord network;
  auto rows = nlohmann::ordered_json::array();
  std::int64_t wrong = 0;
  for (const double share : options.shares) {
    const Result<Measured> measured =
        ShareRun(options, context, share).measure(options.warmup, options.iterations);
    if (!measured.ok()) return measured.status();
    rows.push_back(row_of(options, settings, backend, share, measured.value()));
    wrong += measured.value().wrong;
    if (is_first) print(rows.back());
  }
  network.add(context.tuning());
  if (is_first) {
    if (Status status = write_reports(options, network, rows); !status.ok()) return status;
  }
  shut_down(contexts.value());
  if (wrong == 0) return {};
  return Status(Code::kInternal, std::to_string(wrong) + " results are not the gathered one");
}

}  // namespace elastic::bench
