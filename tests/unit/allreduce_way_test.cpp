#include "collectives/plan/allreduce_way.hpp"

#include <gtest/gtest.h>

namespace elastic::plan {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr AllreduceLimits kLimits{.eager_below = 16 * kKiB + 1, .zero_copy_from = 128 * kKiB};

TEST(AllreduceWay, GoesBySize) {
  EXPECT_EQ(choose_way({.bytes = 0}, kLimits), AllreduceWay::kEager);
  EXPECT_EQ(choose_way({.bytes = 16 * kKiB}, kLimits), AllreduceWay::kEager);
  EXPECT_EQ(choose_way({.bytes = 16 * kKiB + 1}, kLimits), AllreduceWay::kPacked);
  EXPECT_EQ(choose_way({.bytes = 128 * kKiB - 1}, kLimits), AllreduceWay::kPacked);
  EXPECT_EQ(choose_way({.bytes = 128 * kKiB}, kLimits), AllreduceWay::kZeroCopyLinks);
}

TEST(AllreduceWay, IsSharedOnlyIfAllRanksOfferALargeTensor) {
  EXPECT_EQ(choose_way({.bytes = kKiB << 10, .is_offered_by_all = true}, kLimits),
            AllreduceWay::kZeroCopyShared);
  EXPECT_EQ(choose_way({.bytes = 64 * kKiB, .is_offered_by_all = true}, kLimits),
            AllreduceWay::kPacked);
}

TEST(AllreduceWay, PacksWhatIsNotInTheCallersMemoryAsItTravels) {
  EXPECT_EQ(choose_way({.bytes = kKiB << 10, .can_be_zero_copy = false}, kLimits),
            AllreduceWay::kPacked);
  EXPECT_EQ(choose_way({.bytes = kKiB, .can_be_zero_copy = false}, kLimits), AllreduceWay::kEager);
}

TEST(AllreduceWay, PacksWhatIsNotReducedElementByElement) {
  for (const std::size_t bytes : {std::size_t{0}, kKiB, kKiB << 10}) {
    EXPECT_EQ(choose_way({.bytes = bytes, .is_elementwise = false}, kLimits),
              AllreduceWay::kPacked);
    EXPECT_EQ(
        choose_way({.bytes = bytes, .is_elementwise = false, .is_offered_by_all = true}, kLimits),
        AllreduceWay::kPacked);
  }
}

TEST(AllreduceWay, IsNotEagerForAPartOfACall) {
  EXPECT_EQ(choose_way({.bytes = kKiB, .is_whole_call = false}, kLimits), AllreduceWay::kPacked);
  EXPECT_EQ(choose_way({.bytes = kKiB << 10, .is_whole_call = false}, kLimits),
            AllreduceWay::kZeroCopyLinks);
}

TEST(AllreduceWay, IsPackedWithoutLimits) {
  for (const std::size_t bytes : {std::size_t{0}, kKiB, kKiB << 20}) {
    EXPECT_EQ(choose_way({.bytes = bytes}, {}), AllreduceWay::kPacked);
  }
}

TEST(AllreduceWay, SaysWhatStaysInTheCallersMemory) {
  EXPECT_TRUE(is_zero_copy(AllreduceWay::kZeroCopyLinks));
  EXPECT_TRUE(is_zero_copy(AllreduceWay::kZeroCopyShared));
  EXPECT_FALSE(is_zero_copy(AllreduceWay::kPacked));
  EXPECT_FALSE(is_zero_copy(AllreduceWay::kEager));
}

TEST(AllreduceLimits, AllowEagerUpToWhatMessagesTake) {
  EXPECT_EQ(limits_for(3, 32 * kKiB, {}).eager_below, 32 * kKiB + 1);
  EXPECT_EQ(limits_for(3, 0, {}).eager_below, 1U);  // an empty tensor
  EXPECT_EQ(limits_for(3, {}, {}).eager_below, 0U);
}

TEST(AllreduceLimits, AreLowerForTwoRanksOfOneHost) {
  EXPECT_EQ(limits_for(2, 48 * kKiB, {}).zero_copy_from, 64 * kKiB);
  EXPECT_EQ(limits_for(2, {}, {}).zero_copy_from, 128 * kKiB);
  EXPECT_EQ(limits_for(3, 32 * kKiB, {}).zero_copy_from, 128 * kKiB);
}

TEST(AllreduceLimits, FollowADemandedAlgorithm) {
  for (const AllreduceAlgorithm small :
       {AllreduceAlgorithm::kOneShot, AllreduceAlgorithm::kDoubling}) {
    EXPECT_EQ(limits_for(2, 48 * kKiB, small).zero_copy_from, AllreduceLimits::kNever);
    EXPECT_EQ(limits_for(2, 48 * kKiB, small).eager_below, 48 * kKiB + 1);
  }
  EXPECT_EQ(limits_for(4, {}, AllreduceAlgorithm::kRing).zero_copy_from, 128 * kKiB);
}

/// Every size has one way that needs no agreement: the limits leave no overlap.
TEST(AllreduceLimits, OfEagerTensorsAreBelowThoseOfZeroCopyOnes) {
  for (const int ranks : {1, 2, 3, 8}) {
    const AllreduceLimits limits = limits_for(ranks, 48 * kKiB, {});
    EXPECT_LT(limits.eager_below, limits.zero_copy_from);
  }
}

}  // namespace
}  // namespace elastic::plan
