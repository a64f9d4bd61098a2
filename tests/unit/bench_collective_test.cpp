#include <algorithm>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "benchmarks/collective/collective.hpp"
#include "benchmarks/collective/collective_probe.hpp"
#include "benchmarks/collective/collective_result.hpp"

namespace elastic::bench {
namespace {

using Counts = std::vector<std::size_t>;

TEST(BenchCollective, HasTheBusFactorsOfNcclTests) {
  const std::map<std::string, double> of_four{
      {"allreduce", 1.5}, {"all_gather", 0.75}, {"reduce_scatter", 0.75}, {"broadcast", 1},
      {"alltoall", 0.75}, {"gather", 0.75},     {"scatter", 0.75},        {"reduce", 1}};
  ASSERT_EQ(collective_names().size(), of_four.size());
  for (const auto& [name, factor] : of_four) {
    EXPECT_DOUBLE_EQ(make_collective(name)->bus_factor(4), factor) << name;
  }
  EXPECT_DOUBLE_EQ(make_collective("allreduce")->bus_factor(1), 0);
}

TEST(BenchCollective, TensorsAreWholeMultiplesOfWhatItWorksOn) {
  CollectiveOptions options;
  options.sizes = {.min = 4, .max = 64};
  const auto counts = [&](const char* name, int ranks) {
    return counts_of(options, *make_collective(name), ranks);
  };
  EXPECT_EQ(counts("allreduce", 3), (Counts{1, 2, 4, 8, 16}));
  EXPECT_EQ(counts("all_gather", 3), (Counts{3, 6, 9, 18}));  // 4 B and 8 B would be the same
}

// There is no job: the tests make the results.
class CollectiveCheckTest : public ::testing::Test {
 protected:
  static constexpr int kRanks = 3;
  static constexpr std::size_t kCount = 3 * Pattern::kPeriod;

  CallData data() {
    return {.pattern = pattern_,
            .op = ReduceOp::kSum,
            .rank = 1,
            .ranks = kRanks,
            .input = view(std::span(input_)),
            .output = view(std::span(output_))};
  }

  Pattern pattern_{DType::kF32, ReduceOp::kSum, kRanks};
  std::vector<float> input_ = std::vector<float>(kCount);
  std::vector<float> output_ = std::vector<float>(kCount);
};

TEST_F(CollectiveCheckTest, AGatheredTensorHasEveryRanksBlock) {
  const auto gather = make_collective("all_gather");
  constexpr std::size_t kBlock = kCount / kRanks;
  for (int rank = 0; rank < kRanks; ++rank) {
    pattern_.fill({&output_[static_cast<std::size_t>(rank) * kBlock], kBlock, DType::kF32}, rank);
  }
  EXPECT_EQ(gather->count_wrong(data(), Placement::kOutOfPlace), 0);
  pattern_.fill({output_.data(), kBlock, DType::kF32}, 2);  // in the place of rank 0's
  EXPECT_GT(gather->count_wrong(data(), Placement::kOutOfPlace), 0);
}

// As a peer works on them.
TEST_F(CollectiveCheckTest, AScatteredTensorIsLookedForWhereACallLeavesIt) {
  const auto scatter = make_collective("reduce_scatter");
  const CallTensors tensors = scatter->tensors(data(), Placement::kOutOfPlace);
  ASSERT_EQ(tensors.output.count, kCount / kRanks);
  EXPECT_EQ(tensors.output.data, &output_[kCount / kRanks]);
  EXPECT_GT(scatter->count_wrong(data(), Placement::kOutOfPlace), 0);
  float* const part = &output_[kCount / kRanks];
  std::fill_n(part, tensors.output.count, 0.0F);
  for (int rank = 0; rank < kRanks; ++rank) {
    pattern_.fill(view(std::span(input_)), rank);
    for (std::size_t i = 0; i < tensors.output.count; ++i) part[i] += input_[kCount / kRanks + i];
  }
  EXPECT_EQ(scatter->count_wrong(data(), Placement::kOutOfPlace), 0);
}

TEST_F(CollectiveCheckTest, ABroadcastTensorIsTheRoots) {
  const auto broadcast = make_collective("broadcast");
  broadcast->fill(data());
  EXPECT_GT(broadcast->count_wrong(data(), Placement::kInPlace), 0);  // this rank's own
  pattern_.fill({input_.data(), kCount, DType::kF32}, 0);
  EXPECT_EQ(broadcast->count_wrong(data(), Placement::kInPlace), 0);
}

TEST(BenchResult, OthersAreComparedWithNative) {
  EXPECT_EQ(compared_with({"gloo", "mpi", "native"}), 2U);
  EXPECT_EQ(compared_with({"gloo", "mpi"}), 0U);
}

}  // namespace
}  // namespace elastic::bench
