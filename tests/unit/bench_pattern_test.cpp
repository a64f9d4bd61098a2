#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "benchmarks/collective/pattern.hpp"
#include "benchmarks/report/element_names.hpp"
#include "collectives/kernels/reduce.hpp"

namespace elastic::bench {
namespace {

constexpr std::size_t kCount = Pattern::kPeriod + 1000;

struct Case {
  DType dtype;
  ReduceOp op;
  int ranks;
};

std::string describe(const Case& tried) {
  return std::string(name_of(tried.dtype)) + " " + name_of(tried.op) + " of " +
         std::to_string(tried.ranks);
}

std::vector<std::byte> input_of(const Pattern& pattern, const Case& tried, int rank) {
  std::vector<std::byte> bytes(kCount * size_of(tried.dtype));
  pattern.fill({bytes.data(), kCount, tried.dtype}, rank);
  return bytes;
}

// The expected result: reduced by the library's own loops, from rank 0 upwards.
std::vector<std::byte> reduced(const Pattern& pattern, const Case& tried) {
  auto total = input_of(pattern, tried, 0);
  for (int rank = 1; rank < tried.ranks; ++rank) {
    const auto next = input_of(pattern, tried, rank);
    kernels::reduce(tried.dtype, tried.op)(total.data(), total.data(), next.data(), kCount);
  }
  if (tried.op == ReduceOp::kAverage) {
    kernels::divide(tried.dtype, total.data(), kCount, static_cast<std::uint32_t>(tried.ranks));
  }
  return total;
}

TEST(BenchPattern, KnowsEveryReduction) {
  for (const DType dtype : all_dtypes()) {
    for (const ReduceOp op : all_ops()) {
      if (dtype == DType::kBool && op == ReduceOp::kAverage) continue;  // there is none
      for (const int ranks : {1, 2, 3, 8, 15}) {
        const Case tried{dtype, op, ranks};
        const Pattern pattern(dtype, op, ranks);
        const auto total = reduced(pattern, tried);
        EXPECT_EQ(pattern.count_wrong({total.data(), kCount, dtype}), 0) << describe(tried);
      }
    }
  }
}

TEST(BenchPattern, CountsWrongElements) {
  const Case tried{DType::kF32, ReduceOp::kSum, 4};
  const Pattern pattern(tried.dtype, tried.op, tried.ranks);
  auto total = reduced(pattern, tried);
  auto* values = reinterpret_cast<float*>(total.data());
  values[0] += 1;
  values[kCount - 1] = -values[kCount - 1];
  EXPECT_EQ(pattern.count_wrong({values, kCount, tried.dtype}), 2);
}

TEST(BenchPattern, TellsAMissingRankAndSwappedPieces) {
  const Case tried{DType::kF32, ReduceOp::kSum, 4};
  const Pattern pattern(tried.dtype, tried.op, tried.ranks);
  const auto without_last = reduced(pattern, {tried.dtype, tried.op, 3});
  EXPECT_GT(pattern.count_wrong({without_last.data(), kCount, tried.dtype}), 0);
  auto total = reduced(pattern, tried);
  std::swap_ranges(total.begin(), total.begin() + 4096, total.begin() + 4096);
  EXPECT_GT(pattern.count_wrong({total.data(), kCount, tried.dtype}), 0);
}

}  // namespace
}  // namespace elastic::bench
