// Counts whose bytes wrap around: none of them may come out as little.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/tensor_bytes.hpp"
#include "collectives/backend/backend.hpp"
#include "collectives/backend/buffer.hpp"

namespace elastic::collectives {
namespace {

TEST(ImpossibleSizes, AreNoProductsThatWrapAround) {
  EXPECT_TRUE(can_exist(0, 4));
  EXPECT_TRUE(can_exist(kMostAddressableBytes / 4, 4));
  EXPECT_FALSE(can_exist(kMostAddressableBytes / 4 + 1, 4));
  EXPECT_FALSE(can_exist(std::uint64_t{1} << 62, 4));
  EXPECT_FALSE(can_exist(std::numeric_limits<std::uint64_t>::max(), 1));
}

TEST(ImpossibleSizes, OfAnAllgatherNameTheRank) {
  const std::uint64_t huge = std::uint64_t{1} << 62;
  EXPECT_EQ(gathered_bytes("allgather", {1, 2, 3}, 4).value(), 24U);
  for (const std::vector<std::uint64_t>& counts :
       {std::vector<std::uint64_t>{5, huge}, std::vector<std::uint64_t>{huge / 2 + 1, huge},
        std::vector<std::uint64_t>{std::uint64_t{1} << 38, 1}}) {
    const auto total = gathered_bytes("allgather", counts, 4);
    ASSERT_EQ(total.status().code(), Code::kInvalidArgument);
    const std::string rank = counts[0] > huge / 4 ? "rank 0" : "rank 1";
    EXPECT_NE(total.status().message().find("the block of " + rank), std::string::npos)
        << total.status().message();
  }
}

TEST(ImpossibleSizes, OfABufferAreNotRoundedToNothing) {
  Buffer buffer;
  for (const std::size_t less : std::vector<std::size_t>{0, 1, 62, 100, 1000000}) {
    EXPECT_THROW(buffer.resize(std::numeric_limits<std::size_t>::max() - less), std::bad_alloc);
  }
  EXPECT_EQ(buffer.size(), 0U);
  EXPECT_EQ(buffer.capacity(), 0U);
}

}  // namespace
}  // namespace elastic::collectives
