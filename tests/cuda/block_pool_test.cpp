#include "collectives/device/block_pool.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace elastic::device {
namespace {

/// Memory that is counted.
struct Source {
  std::set<std::byte*> out;
  int got = 0;
  bool empty = false;

  BlockPool pool() {
    return BlockPool(
        [this](std::size_t bytes) -> Result<std::byte*> {
          if (empty) return Status(Code::kUnavailable, "no more");
          ++got;
          return *out.insert(new std::byte[bytes]).first;
        },
        [this](std::byte* memory) {
          EXPECT_EQ(out.erase(memory), 1U);
          delete[] memory;
        });
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
  source.empty = true;
  EXPECT_EQ(pool.lend(1).status().message(), "no more");
  EXPECT_TRUE(pool.lend(0).ok());
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
