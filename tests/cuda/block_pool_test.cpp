#include "collectives/device/block_pool.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace elastic::device {
namespace {

/// Memory that is counted.
struct Source {
  std::map<std::byte*, std::size_t> out;
  int got = 0;
  std::size_t left = SIZE_MAX;

  BlockPool pool(BlockPool::Spare spare = BlockPool::Spare::kGivenBack) {
    return BlockPool(
        [this](std::size_t bytes) -> Result<std::byte*> {
          if (bytes > left) return Status(Code::kUnavailable, "no more");
          ++got;
          left -= bytes;
          return out.emplace(new std::byte[bytes], bytes).first->first;
        },
        [this](std::byte* memory) {
          ASSERT_EQ(out.count(memory), 1U);
          left += out.at(memory);
          out.erase(memory);
          delete[] memory;
        },
        spare);
  }
};

TEST(BlockPool, LendsWhatCameBack) {
  Source source;
  {
    BlockPool pool = source.pool();
    std::byte* first = nullptr;
    {
      const auto block = pool.lend(1000000);
      ASSERT_TRUE(block.ok());
      first = block.value().data();
    }
    const auto again = pool.lend(999000);
    EXPECT_EQ(again.value().data(), first);
    const auto other = pool.lend(1000000);
    EXPECT_NE(other.value().data(), first);
    EXPECT_EQ(source.got, 2);
  }
  EXPECT_TRUE(source.out.empty()) << "memory that is not given back";
}

TEST(BlockPool, SaysWhenThereIsNoMore) {
  Source source;
  BlockPool pool = source.pool();
  EXPECT_EQ(pool.lend(0).value().data(), nullptr);
  source.left = 0;
  EXPECT_EQ(pool.lend(1).status().message(), "no more");
  EXPECT_TRUE(pool.lend(0).ok());
}

TEST(BlockPool, GivesSpareBlocksBackWhereMemoryIsShort) {
  Source source;
  source.left = 3000000;
  BlockPool pool = source.pool();
  const auto lent = pool.lend(1000000);
  ASSERT_TRUE(lent.ok());
  {
    const auto spare = pool.lend(1000000);
    ASSERT_TRUE(spare.ok());
  }
  EXPECT_TRUE(pool.lend(1500000).ok()) << "the spare block is too small, and in the way";
  EXPECT_TRUE(source.out.contains(lent.value().data())) << "it is in use";
  EXPECT_FALSE(pool.lend(2500000).ok());
}

TEST(BlockPool, KeepsSpareBlocksWhereTheBorrowerCannotWaitForTheirEnd) {
  Source source;
  source.left = 1500000;
  BlockPool pool = source.pool();
  {
    const auto spare = pool.lend(1000000);
    ASSERT_TRUE(spare.ok());
  }
  EXPECT_FALSE(pool.lend(1200000, BlockPool::Spare::kKept).ok());
  EXPECT_EQ(source.out.size(), 1U);
  EXPECT_TRUE(pool.lend(1200000).ok());
}

TEST(BlockPool, KeepsSpareBlocksWhereTheyAreReferredTo) {
  Source source;
  source.left = 1500000;
  BlockPool pool = source.pool(BlockPool::Spare::kKept);
  {
    const auto spare = pool.lend(1000000);
    ASSERT_TRUE(spare.ok());
  }
  EXPECT_FALSE(pool.lend(1200000).ok());
  EXPECT_EQ(source.out.size(), 1U);
}

TEST(BlockPool, HasFewSizesThatFit) {
  std::set<std::size_t> sizes;
  for (std::size_t bytes = 1; bytes < (std::size_t{1} << 26); bytes += 4093) {
    const std::size_t size = BlockPool::size_for(bytes);
    EXPECT_GE(size, bytes);
    EXPECT_LE(size, std::max(bytes + (std::size_t{64} << 10), bytes + bytes / 4)) << bytes;
    sizes.insert(size);
  }
  EXPECT_LT(sizes.size(), 50U);
}

}  // namespace
}  // namespace elastic::device
