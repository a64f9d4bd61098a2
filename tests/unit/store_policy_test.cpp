#include "collectives/transport/ring/store_policy.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace elastic::transport {
namespace {

using kernels::Store;

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// Two cores: what writing 1 KiB takes through the caches, to lines that went through them the last
/// time and to others, and past them.
struct Cores {
  double through = 0;
  double cold = 0;
  double past = 10;
};
constexpr Cores kNear{8, 30};
constexpr Cores kFar{60, 60};

/// Writes messages to a ring, and counts what went through the caches.
class StorePolicyTest : public testing::Test {
 protected:
  void write(const Cores& cores, std::size_t bytes, std::size_t message = 256 * 1024) {
    through_ = 0;
    written_ = 0;
    while (written_ < bytes) {
      at_ = (at_ + 64) % kRing;  // a header
      for (std::size_t left = message; left > 0;) {
        const StorePolicy::Piece piece = choice_.next(at_, std::min(left, kRing - at_));
        ASSERT_GT(piece.bytes, 0U);
        ASSERT_LE(piece.bytes, std::min(left, kRing - at_));
        const double ticks = write(cores, piece);
        if (piece.timed) choice_.took(piece, static_cast<std::int64_t>(ticks * lateness_));
        at_ = (at_ + piece.bytes) % kRing;
        left -= piece.bytes;
      }
    }
  }
  double share_through() const {
    return static_cast<double>(through_) / static_cast<double>(written_);
  }

  StorePolicy choice_;
  double lateness_ = 1;

 private:
  static constexpr std::size_t kRing = kMiB;
  static constexpr std::size_t kLine = 1024;

  double write(const Cores& cores, const StorePolicy::Piece& piece) {
    const bool through = piece.store == Store::kTemporal;
    double ticks = 0;
    for (std::size_t line = at_ / kLine; line * kLine < at_ + piece.bytes; ++line) {
      ticks += (!through ? cores.past : warm_[line] ? cores.through : cores.cold) * kLine / 1024;
      warm_[line] = through;
    }
    written_ += piece.bytes;
    if (through) through_ += piece.bytes;
    return ticks;
  }

  std::vector<bool> warm_ = std::vector<bool>(kRing / kLine);
  std::size_t at_ = 0;
  std::size_t through_ = 0;
  std::size_t written_ = 0;
};

TEST_F(StorePolicyTest, WhatIsShortGoesThroughTheCaches) {
  for (const Cores& cores : {kNear, kFar}) {
    write(cores, kMiB, StorePolicy::kLeastBytes - 1);
    EXPECT_EQ(share_through(), 1);
  }
}

TEST_F(StorePolicyTest, GoesThroughACacheThatIsShared) {
  write(kNear, (10) * kMiB);
  write(kNear, 64 * kMiB);
  EXPECT_GT(share_through(), 0.98);
}

TEST_F(StorePolicyTest, GoesPastCachesThatAreNot) {
  write(kFar, 64 * kMiB);
  EXPECT_LT(share_through(), 0.02);
  write(kFar, 512 * kMiB);
  EXPECT_LT(share_through(), 0.002);
}

TEST_F(StorePolicyTest, FollowsCoresThatChange) {
  for (int i = 0; i < 3; ++i) {
    write(kFar, 512 * kMiB);
    EXPECT_LT(share_through(), 0.02) << "change " << i;
    write(kNear, 512 * kMiB);
    EXPECT_GT(share_through(), 0.4) << "change " << i;
  }
  write(kFar, 8 * kMiB);
  write(kFar, 8 * kMiB);
  EXPECT_LT(share_through(), 0.1);
}

TEST_F(StorePolicyTest, TakesNoLostCoreForSlowCaches) {
  write(kNear, 16 * kMiB);
  lateness_ = 1000;
  write(kNear, 1, 256 * 1024);
  lateness_ = 1;
  write(kNear, 8 * kMiB);
  EXPECT_GT(share_through(), 0.95);
}

TEST_F(StorePolicyTest, ForgetsThatMemoryWasTouchedForTheFirstTime) {
  lateness_ = 10;
  write(kFar, 1, kMiB);
  lateness_ = 1;
  write(kFar, 8 * kMiB);
  write(kFar, 8 * kMiB);
  EXPECT_LT(share_through(), 0.05);
}

TEST_F(StorePolicyTest, LearnsFromShortMessages) {
  write(kNear, 64 * kMiB, StorePolicy::kLeastBytes);
  write(kNear, 8 * kMiB, StorePolicy::kLeastBytes);
  EXPECT_GT(share_through(), 0.95);
  write(kFar, 64 * kMiB, StorePolicy::kLeastBytes);
  write(kFar, 64 * kMiB, StorePolicy::kLeastBytes);
  EXPECT_LT(share_through(), 0.05);
}

}  // namespace
}  // namespace elastic::transport
