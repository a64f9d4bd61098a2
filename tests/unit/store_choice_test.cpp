#include "collectives/transport/ring/store_choice.hpp"

#include <cstddef>
#include <cstdint>

#include <gtest/gtest.h>

namespace elastic::transport {
namespace {

using kernels::Store;

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// Two cores: what writing 1 KiB takes through the caches and past them.
struct Cores {
  double through = 0;
  double past = 10;
};
constexpr Cores kNear{8, 10};
constexpr Cores kFar{60, 10};

/// Writes messages, and counts what went through the caches.
class StoreChoiceTest : public testing::Test {
 protected:
  void write(const Cores& cores, std::size_t bytes, std::size_t message = 256 * 1024) {
    through_ = 0;
    written_ = 0;
    while (written_ < bytes) {
      for (std::size_t left = message; left > 0;) {
        const StoreChoice::Piece piece = choice_.next(left);
        ASSERT_GT(piece.bytes, 0U);
        ASSERT_LE(piece.bytes, left);
        left -= piece.bytes;
        written_ += piece.bytes;
        const bool through = piece.store == Store::kCached;
        if (through) through_ += piece.bytes;
        if (piece.bytes < StoreChoice::kLeastBytes) continue;
        const double cost = through ? cores.through : cores.past;
        choice_.took(piece, static_cast<std::int64_t>(cost * static_cast<double>(piece.bytes) /
                                                      1024 * lateness_));
      }
    }
  }
  double share_through() const {
    return static_cast<double>(through_) / static_cast<double>(written_);
  }

  StoreChoice choice_;
  double lateness_ = 1;

 private:
  std::size_t through_ = 0;
  std::size_t written_ = 0;
};

TEST_F(StoreChoiceTest, WhatIsShortGoesThroughTheCaches) {
  for (const Cores& cores : {kNear, kFar}) {
    write(cores, kMiB, StoreChoice::kLeastBytes - 1);
    EXPECT_EQ(share_through(), 1);
  }
}

TEST_F(StoreChoiceTest, GoesThroughACacheThatIsShared) {
  write(kNear, kMiB);
  write(kNear, 64 * kMiB);
  EXPECT_GT(share_through(), 0.98);
}

TEST_F(StoreChoiceTest, GoesPastCachesThatAreNot) {
  write(kFar, kMiB);
  write(kFar, 64 * kMiB);
  EXPECT_LT(share_through(), 0.003);
}

TEST_F(StoreChoiceTest, FollowsCoresThatChange) {
  for (int i = 0; i < 3; ++i) {
    write(kFar, 256 * kMiB);
    EXPECT_LT(share_through(), 0.01) << "change " << i;
    write(kNear, 256 * kMiB);
    EXPECT_GT(share_through(), 0.7) << "change " << i;
  }
  write(kFar, 4 * kMiB);
  EXPECT_LT(share_through(), 0.25);
}

TEST_F(StoreChoiceTest, TakesNoLostCoreForSlowCaches) {
  write(kNear, 8 * kMiB);
  lateness_ = 1000;
  write(kNear, 1, 256 * 1024);
  lateness_ = 1;
  write(kNear, 8 * kMiB);
  EXPECT_GT(share_through(), 0.95);
}

TEST_F(StoreChoiceTest, ForgetsThatMemoryWasTouchedForTheFirstTime) {
  lateness_ = 10;
  write(kFar, 1, kMiB);
  lateness_ = 1;
  write(kFar, 8 * kMiB);
  write(kFar, 8 * kMiB);
  EXPECT_LT(share_through(), 0.05);
}

TEST_F(StoreChoiceTest, LearnsFromShortMessages) {
  write(kNear, kMiB, StoreChoice::kLeastBytes);
  write(kNear, 8 * kMiB, StoreChoice::kLeastBytes);
  EXPECT_GT(share_through(), 0.95);
  write(kFar, 8 * kMiB, StoreChoice::kLeastBytes);
  write(kFar, 8 * kMiB, StoreChoice::kLeastBytes);
  EXPECT_LT(share_through(), 0.05);
}

}  // namespace
}  // namespace elastic::transport
