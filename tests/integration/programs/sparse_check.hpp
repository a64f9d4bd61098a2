#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <elastic/sparse_allreduce.hpp>

#include "integration/programs/check_program.hpp"
#include "integration/programs/small_numbers.hpp"

namespace elastic::testing {

/// Rows of one member for one tensor: small whole numbers, whose sums are exact in every order.
template <Element T>
struct MadeRows {
  std::vector<std::int64_t> indices;
  std::vector<T> values;
  std::size_t width;
  std::size_t rows;

  /// The rows of `rank`, which all ranks know: some indices several times, some rows of zeros, and
  /// from every third rank none.
  MadeRows(int rank, std::uint64_t seed, std::size_t rows_of_all, std::size_t elements)
      : width(elements), rows(rows_of_all) {
    std::mt19937_64 random(seed * 1000 + static_cast<std::uint64_t>(rank));
    const std::size_t count =
        (static_cast<std::uint64_t>(rank) + seed) % 3 == 0 ? 0 : random() % (rows + 1);
    for (std::size_t i = 0; i < count; ++i) {
      indices.push_back(static_cast<std::int64_t>(random() % rows));
      for (std::size_t at = 0; at < width; ++at) {
        values.push_back(T(static_cast<small_numbers::Wide<T>>(random() % 3)));
      }
    }
  }
  SparseRowsView view() const { return {indices, elastic::view(std::span(values)), width, rows}; }
};

/// Makes sparse_allreduce and its other forms on a Context or a Group, right and wrong, and
/// compares the results with those of a model.
class SparseCheck {
 public:
  SparseCheck(Collectives& members, int rank, int size)
      : members_(members), rank_(rank), size_(size) {}

  /// Adds the results to `hash`, which is the same on all members.
  void run(ResultHash& hash) {
    for_each_dtype([this]<typename T>() { every_form<T>(); });
    grouped();
    asynchronous();
    named();
    if (size_ > 1) mismatches();
    faults();
    hash.add(&results_, sizeof(results_));
  }

 private:
  template <Element T>
  void expect(const SparseRows& sums, std::uint64_t seed, std::size_t rows, std::size_t width,
              ReduceOp op, const std::string& what) {
    std::map<std::int64_t, std::vector<std::int64_t>> model;
    for (int rank = 0; rank < size_; ++rank) {
      const MadeRows<T> given(rank, seed, rows, width);
      for (std::size_t i = 0; i < given.values.size(); ++i) {
        auto& sum = model[given.indices[i / width]];
        sum.resize(width);
        sum[i % width] +=
            static_cast<std::int64_t>(static_cast<small_numbers::Wide<T>>(given.values[i]));
      }
    }
    std::vector<std::int64_t> indices;
    std::vector<T> values;
    for (const auto& [index, sum] : model) {
      indices.push_back(index);
      for (const std::int64_t each : sum) values.push_back(divided<T>(each, op));
    }
    require(sums.contributors.size() == static_cast<std::size_t>(size_), "workers, " + what);
    require(sums.indices == indices, "indices, " + what);
    require(sums.values.size() == values.size() * sizeof(T) &&
                (values.empty() ||
                 std::memcmp(sums.values.data(), values.data(), sums.values.size()) == 0),
            "sums, " + what);
    ResultHash next;
    next.add(&results_, sizeof(results_));
    next.add(values);
    results_ = next.value();
  }

  template <Element T>
  T divided(std::int64_t sum, ReduceOp op) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(op == ReduceOp::kAverage ? sum / size_ : sum);
    } else {
      const auto wide = static_cast<small_numbers::Wide<T>>(sum);
      return T(op == ReduceOp::kAverage ? wide / static_cast<small_numbers::Wide<T>>(size_) : wide);
    }
  }

  template <Element T>
  void every_form() {
    for (const auto form : {SparseForm::kGathered, SparseForm::kDense, SparseForm::kChosen}) {
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage}) {
        for (const std::size_t rows : {1U, 7U, 60U}) {
          const std::uint64_t seed = ++seed_;
          const std::size_t width = 1 + seed % 5;
          const MadeRows<T> mine(rank_, seed, rows, width);
          expect<T>(sparse_allreduce(members_, mine.view(), op, form), seed, rows, width, op,
                    "form " + std::to_string(static_cast<int>(form)) + " of " +
                        std::to_string(sizeof(T)) + " bytes, " + std::to_string(rows) + " rows");
        }
      }
    }
  }

  /// Tensors of several types and sizes, one without rows.
  void grouped() {
    for (const auto form : {SparseForm::kGathered, SparseForm::kDense, SparseForm::kChosen}) {
      const std::uint64_t seed = (seed_ += 3);
      const MadeRows<float> first(rank_, seed, 50, 3);
      const MadeRows<std::int8_t> second(rank_, seed + 1, 20, 1);
      const MadeRows<double> third(rank_, seed + 2, 9, 4);
      const SparseRowsView none{{}, {nullptr, 0, DType::kBF16, {}}, 7, 0};
      const SparseRowsView tensors[] = {first.view(), second.view(), none, third.view()};
      const auto sums = grouped_sparse_allreduce(members_, tensors, ReduceOp::kAverage, form);
      require(sums.size() == 4 && sums[2].indices.empty() && sums[2].values.empty(), "grouped");
      expect<float>(sums[0], seed, 50, 3, ReduceOp::kAverage, "the first");
      expect<std::int8_t>(sums[1], seed + 1, 20, 1, ReduceOp::kAverage, "the second");
      expect<double>(sums[3], seed + 2, 9, 4, ReduceOp::kAverage, "the last");
    }
    must_fail(ErrorCode::kInvalidArgument, {"grouped_sparse_allreduce", "one tensor at least"},
              [&] { (void)grouped_sparse_allreduce(members_, {}); });
  }

  /// In program order, between blocking calls. The rows end before the calls do.
  void asynchronous() {
    std::vector<PendingSparseRows> pending;
    const std::uint64_t seed = (seed_ += 6);
    for (std::uint64_t call = 0; call < 4; ++call) {
      const MadeRows<std::int32_t> mine(rank_, seed + call, 30, 2);
      const auto form = call % 2 == 0 ? SparseForm::kChosen : SparseForm::kDense;
      pending.push_back(sparse_allreduce_async(members_, mine.view(), ReduceOp::kSum, form));
    }
    members_.barrier();
    for (std::uint64_t call = 0; call < 4; ++call) {
      require(pending[call].ready(), "a blocking call comes after those before it");
      const PendingSparseRows copy = pending[call];
      for (int twice = 0; twice < 2; ++twice) {
        expect<std::int32_t>(copy.wait(), seed + call, 30, 2, ReduceOp::kSum, "in program order");
      }
      expect<std::int32_t>(std::move(pending[call]).wait(), seed + call, 30, 2, ReduceOp::kSum,
                           "by another handle");
    }
    must_fail(ErrorCode::kInvalidArgument, {}, [] { (void)PendingSparseRows().wait(); });
  }

  /// In another order on each rank.
  void named() {
    const std::uint64_t seed = (seed_ += 6);
    std::map<std::uint64_t, PendingSparseRows> pending;
    for (int i = 0; i < 4; ++i) {
      const auto call = static_cast<std::uint64_t>((i + rank_) % 4);
      const MadeRows<float> mine(rank_, seed + call, 40, 3);
      pending[call] = sparse_allreduce_async(members_, "rows " + std::to_string(call), mine.view(),
                                             ReduceOp::kAverage);
    }
    for (auto& [call, each] : pending) {
      expect<float>(std::move(each).wait(), seed + call, 40, 3, ReduceOp::kAverage, "named");
    }
    must_fail(ErrorCode::kInvalidArgument, {"name"}, [&] {
      (void)sparse_allreduce_async(members_, "", MadeRows<float>(0, 0, 1, 1).view());
    });
  }

  /// The last rank makes another call than the others.
  void mismatches() {
    const bool is_odd = rank_ == size_ - 1;
    const std::string odd = "rank " + std::to_string(size_ - 1) + " called ";
    const std::vector<std::int64_t> indices{1};
    const std::vector<double> values(2);
    const std::vector<std::int64_t> integers(2);
    const SparseRowsView usual{indices, view(std::span(values)), 2, 9};
    const auto fails = [&](SparseRowsView other, ReduceOp op, SparseForm form,
                           const std::string& text) {
      must_fail(ErrorCode::kMismatch,
                {"rank 0 called sparse_allreduce on a tensor of 9 rows of 2 f64, sum, rank",
                 odd + "sparse_allreduce on a tensor of " + text + ": give rows of the same"},
                [&] {
                  if (is_odd) sparse_allreduce(members_, other, op, form);
                  if (!is_odd) sparse_allreduce(members_, usual);
                });
    };
    SparseRowsView other = usual;
    other.rows = 8;
    fails(other, ReduceOp::kSum, SparseForm::kChosen, "8 rows of 2 f64, sum");
    other = usual;
    other.width = 1;
    other.values.count = 1;
    fails(other, ReduceOp::kSum, SparseForm::kChosen, "9 rows of 1 f64, sum");
    other = usual;
    other.values = view(std::span(integers));
    fails(other, ReduceOp::kSum, SparseForm::kChosen, "9 rows of 2 i64, sum");
    fails(usual, ReduceOp::kAverage, SparseForm::kChosen, "9 rows of 2 f64, average");
    fails(usual, ReduceOp::kSum, SparseForm::kDense, "9 rows of 2 f64, sum, dense");
    const std::vector<SparseRowsView> two{usual, is_odd ? other : usual};
    must_fail(ErrorCode::kMismatch,
              {odd + "sparse_allreduce on 2 tensors, of which number 1 has 9 rows of 2 i64, sum"},
              [&] { (void)grouped_sparse_allreduce(members_, two); });
    must_fail(
        ErrorCode::kMismatch, {"on 2 tensors, rank ", odd + "sparse_allreduce on 1 tensor:"},
        [&] { (void)grouped_sparse_allreduce(members_, std::span(two).first(is_odd ? 1 : 2)); });
    must_fail(ErrorCode::kMismatch, {odd + "sparse_allreduce on a tensor of 9 rows of 2 i64"}, [&] {
      (void)sparse_allreduce_async(members_, "unlike", is_odd ? other : usual).wait();
    });
    must_fail(ErrorCode::kMismatch, {"sparse_allreduce", "barrier"}, [&] {
      if (is_odd) members_.barrier();
      if (!is_odd) sparse_allreduce(members_, usual);
    });
    must_fail(ErrorCode::kMismatch, {"submitted sparse_allreduce", "allgather of u8"}, [&] {
      if (!is_odd) return (void)sparse_allreduce_async(members_, "x", usual).wait();
      const std::vector<std::uint8_t> block(3);
      (void)members_.allgather_async("x", std::span(block)).wait();
    });
  }

  /// An index of the last rank is no row, and tensors that no memory can hold.
  void faults() {
    const auto last = static_cast<std::size_t>(size_ - 1);
    const std::vector<std::int64_t> indices{0, rank_ == size_ - 1 ? 5 : 4};
    const std::vector<float> values(2);
    const SparseRowsView rows{indices, view(std::span(values)), 1, 5};
    const std::string text = "sparse_allreduce: index 5 of rank " + std::to_string(last) +
                             ", at place 1, is no row; the tensor has 5: this call is done";
    for (const auto form : {SparseForm::kGathered, SparseForm::kDense}) {
      must_fail(ErrorCode::kInvalidArgument, {text},
                [&] { sparse_allreduce(members_, rows, ReduceOp::kSum, form); });
    }
    const auto pending = sparse_allreduce_async(members_, rows);
    for (int twice = 0; twice < 2; ++twice) {
      must_fail(ErrorCode::kInvalidArgument, {text}, [&] { (void)pending.wait(); });
    }
    const auto by_name = sparse_allreduce_async(members_, "fault", rows);
    for (int twice = 0; twice < 2; ++twice) {
      must_fail(ErrorCode::kInvalidArgument, {text}, [&] { (void)by_name.wait(); });
    }
    SparseRowsView huge = rows;
    huge.rows = std::size_t{1} << 61;
    must_fail(ErrorCode::kInvalidArgument, {"has more bytes than memory can have", "SparseForm"},
              [&] { sparse_allreduce(members_, huge, ReduceOp::kSum, SparseForm::kDense); });
    require(sparse_allreduce(members_, huge).indices.front() == 0, "a tensor that is never dense");
    for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kAdasum}) {
      must_fail(ErrorCode::kInvalidArgument, {"summed or averaged only"},
                [&] { sparse_allreduce(members_, rows, op); });
    }
    SparseRowsView nowhere = rows;
    nowhere.indices = {static_cast<const std::int64_t*>(nullptr), 2};
    must_fail(ErrorCode::kInvalidArgument, {"sparse_allreduce: 2 indices lie at a null pointer"},
              [&] { sparse_allreduce(members_, nowhere); });
    must_fail(ErrorCode::kInvalidArgument, {"sparse_allreduce: there is no form 9"}, [&] {
      sparse_allreduce(members_, rows, ReduceOp::kSum, static_cast<SparseForm>(9));
    });
    must_fail(ErrorCode::kInvalidArgument, {"sparse_allreduce_async: a named call needs a name"},
              [&] { (void)sparse_allreduce_async(members_, "", rows); });
    SparseRowsView ragged = rows;
    ragged.width = 3;
    must_fail(ErrorCode::kInvalidArgument, {"2 indices and 2 values"},
              [&] { sparse_allreduce(members_, ragged); });
  }

  Collectives& members_;
  const int rank_;
  const int size_;
  std::uint64_t seed_ = 0;
  std::uint64_t results_ = 0;  ///< a hash of all
};

}  // namespace elastic::testing
