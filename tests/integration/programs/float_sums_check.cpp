// A worker that makes allreduces by Adasum and with factors, and compares each result with what it
// computes by itself. Writes a hash over all results to <log>/<rank>, for the test to compare.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <elastic/elastic.hpp>

#include "adasum_model.hpp"
#include "integration/programs/check_program.hpp"
#include "integration/programs/small_numbers.hpp"

namespace {

using elastic::bfloat16;
using elastic::Contributors;
using elastic::ErrorCode;
using elastic::float16;
using elastic::ReduceOp;
using elastic::TensorView;
using elastic::testing::fail;
using elastic::testing::must_fail;
using elastic::testing::require;
using elastic::testing::ResultHash;
using elastic::testing::same_bits;
using elastic::testing::write_result;
using elastic::testing::small_numbers::contribution;
using elastic::testing::small_numbers::expected;
using elastic::testing::small_numbers::Wide;

constexpr std::size_t kCounts[] = {0, 1, 2, 5, 1003, 70001};

class Checks {
 public:
  explicit Checks(std::string folder)
      : folder_(std::move(folder)), rank_(elastic::rank()), size_(elastic::size()) {}

  void run() {
    adasum();
    scaled();
    write_result(folder_, hash_);
  }

 private:
  template <typename T>
  void check(const std::vector<T>& result, ReduceOp op, const std::string& what) {
    const std::vector<T> right = expected<T>(size_, result.size(), op);
    for (std::size_t i = 0; i < right.size(); ++i) {
      // Values are compared, not bits: -0.0 equals 0.0.
      require(static_cast<Wide<T>>(result[i]) == static_cast<Wide<T>>(right[i]),
              what + ": op " + std::to_string(static_cast<int>(op)) + ", element " +
                  std::to_string(i) + " of " + std::to_string(right.size()));
    }
    hash_.add(result);
  }

  void check(const Contributors& contributors) const {
    require(contributors.size() == static_cast<std::size_t>(size_), "not all contributed");
  }

  /// Compares with the model, in a tolerance for the type.
  template <typename T>
  void check_adasum(const std::vector<T>& result, const std::string& what,
                    ReduceOp op = ReduceOp::kAdasum) {
    std::vector<elastic::adasum_model::Vector> all;
    for (int rank = 0; rank < size_; ++rank) {
      auto& vector = all.emplace_back();
      for (const T value : contribution<T>(rank, result.size())) {
        vector.push_back(static_cast<double>(static_cast<Wide<T>>(value)));
      }
    }
    // All workers are on one host.
    const std::vector<int> hosts(static_cast<std::size_t>(size_));
    const elastic::adasum_model::Vector right = op == ReduceOp::kAdasum
                                                    ? elastic::adasum_model::of_all(all)
                                                    : elastic::adasum_model::of_hosts(all, hosts);
    const double tolerance = sizeof(T) == 2 ? 0.1 : 1e-5;
    for (std::size_t i = 0; i < result.size(); ++i) {
      const auto value = static_cast<double>(static_cast<Wide<T>>(result[i]));
      require(std::abs(value - right[i]) <= tolerance,
              what + ": element " + std::to_string(i) + " of " + std::to_string(result.size()) +
                  " is " + std::to_string(value) + ", not " + std::to_string(right[i]));
    }
    hash_.add(result);
  }

  static ReduceOp named_op(std::size_t index) {
    if (index % 4 == 3) return ReduceOp::kSum;
    return index % 4 == 2 ? ReduceOp::kHierarchicalAdasum : ReduceOp::kAdasum;
  }

  void adasum() {
    for (const std::size_t count : kCounts) {
      std::vector<float> data = contribution<float>(rank_, count);
      check(elastic::allreduce(data, ReduceOp::kAdasum));
      check_adasum(data, "Adasum");
      data = contribution<float>(rank_, count);
      check(elastic::allreduce(data, ReduceOp::kHierarchicalAdasum));
      check_adasum(data, "hierarchical Adasum", ReduceOp::kHierarchicalAdasum);
    }
    // Each tensor of a group, and each of a bucket, has weights of its own.
    std::vector<double> doubles = contribution<double>(rank_, 1001);
    std::vector<bfloat16> halves = contribution<bfloat16>(rank_, 77);
    std::vector<float> floats = contribution<float>(rank_, 40000);
    const std::vector<TensorView> group{elastic::view(std::span(doubles)),
                                        elastic::view(std::span(halves)),
                                        elastic::view(std::span(floats))};
    check(elastic::grouped_allreduce(group, ReduceOp::kAdasum));
    check_adasum(doubles, "Adasum of a group");
    check_adasum(halves, "Adasum of a group");
    check_adasum(floats, "Adasum of a group");
    std::vector<std::vector<float>> named;
    for (std::size_t i = 0; i < 8; ++i) named.push_back(contribution<float>(rank_, i * 211));
    std::vector<elastic::Work> works;
    for (std::size_t i = 0; i < named.size(); ++i) {
      works.push_back(
          elastic::allreduce_async("adasum " + std::to_string(i), named[i], named_op(i)));
    }
    for (std::size_t i = 0; i < named.size(); ++i) {
      check(works[i].wait());
      if (named_op(i) == ReduceOp::kSum) {
        check(named[i], ReduceOp::kSum, "named, beside Adasum");
      } else {
        check_adasum(named[i], "named Adasum", named_op(i));
      }
    }
  }

  /// By powers of two, so that nothing is rounded.
  template <typename T>
  void check_scaled(std::vector<T> result, ReduceOp op, const std::string& what) {
    for (T& value : result) value = T(static_cast<Wide<T>>(value) / 4);
    check(result, op, what);
  }

  template <typename T>
  void scaled(std::size_t count) {
    const elastic::Scale scale(2, 2);
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMax}) {
      const std::vector<T> mine = contribution<T>(rank_, count);
      std::vector<T> data = mine;
      check(elastic::allreduce(data, op, scale));
      check_scaled(data, op, "scaled in place");
      std::vector<T> out(count);
      check(elastic::allreduce(elastic::view(std::span<const T>(mine)),
                               elastic::view(std::span<T>(out)), op, scale));
      require(same_bits(out, data), "scaled out of place differs from in place");
      require(same_bits(mine, contribution<T>(rank_, count)), "a scaled call changed its input");
    }
  }

  void scaled() {
    for (const std::size_t count : kCounts) {
      scaled<float16>(count);
      scaled<bfloat16>(count);
      scaled<float>(count);
      scaled<double>(count);
    }
    const elastic::Scale scale(0.5, 8);
    std::vector<float> floats = contribution<float>(rank_, 70001);
    std::vector<double> doubles = contribution<double>(rank_, 3);
    const std::vector<TensorView> group{elastic::view(std::span(floats)),
                                        elastic::view(std::span(doubles))};
    check(elastic::grouped_allreduce(group, ReduceOp::kSum, scale));
    check_scaled(floats, ReduceOp::kSum, "a scaled group");
    check_scaled(doubles, ReduceOp::kSum, "a scaled group");
    // The views stay.
    std::ranges::copy(contribution<float>(rank_, 70001), floats.begin());
    std::ranges::copy(contribution<double>(rank_, 3), doubles.begin());
    std::vector<float> plain = contribution<float>(rank_, 99);
    std::vector<float> single = contribution<float>(rank_, 101);
    const elastic::Work first =
        elastic::grouped_allreduce_async("scaled", group, ReduceOp::kAverage, scale);
    const elastic::Work second = elastic::allreduce_async("plain", plain, ReduceOp::kAverage);
    const elastic::Work third =
        elastic::allreduce_async("scaled, too", single, ReduceOp::kAverage, scale);
    for (const elastic::Work* work : {&first, &second, &third}) check(work->wait());
    check_scaled(floats, ReduceOp::kAverage, "a named scaled group");
    check_scaled(doubles, ReduceOp::kAverage, "a named scaled group");
    check_scaled(single, ReduceOp::kAverage, "a named scaled tensor");
    check(plain, ReduceOp::kAverage, "a named tensor beside scaled ones");
    if (size_ < 2) return;
    const elastic::Scale own(rank_ + 1, 1);
    must_fail("other scales", ErrorCode::kMismatch, {"sum, but rank 1", "sum, scaled"},
              [&] { elastic::allreduce(single, ReduceOp::kSum, own); });
    must_fail("other scales, named", ErrorCode::kMismatch, {"times 2 before and 1 after"},
              [&] { elastic::allreduce_async("own", single, ReduceOp::kSum, own).wait(); });
  }

  std::string folder_;
  int rank_;
  int size_;
  ResultHash hash_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: float_sums_check LOG_FOLDER");
  return elastic::testing::as_a_worker([&] { Checks(argv[1]).run(); });
}
